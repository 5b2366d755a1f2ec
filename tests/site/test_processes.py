"""Two processes, one file: writers wait for each other, and no process keeps anything that goes stale."""

import sqlite3
import subprocess
import sys
import time

import pytest
from tests.site.checks import assert_fresh

import everview as ev

PROGRAM = """
CREATE TABLE t (a BIGINT, b BIGINT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
CREATE MATERIALIZED VIEW sums AS SELECT b, count(*) AS n, sum(a) AS s, max(a) AS m FROM t GROUP BY b;
CREATE MATERIALIZED VIEW j AS SELECT t.a, k.n FROM t LEFT JOIN k ON t.b = k.id;
CREATE MATERIALIZED VIEW top AS SELECT a, b FROM t ORDER BY a DESC LIMIT 3;
CREATE MATERIALIZED VIEW ranks AS SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS r FROM t;
CREATE MATERIALIZED VIEW rest AS SELECT a FROM t EXCEPT SELECT n FROM k;
"""

CHILD = """
import sys
import everview as ev
site = ev.Site.open(sys.argv[1])
for line in sys.stdin:
    try:
        print(eval(line), flush=True)
    except ev.EverviewError as error:
        print(type(error).__name__, error, flush=True)
"""


class Child:
    """A site in another process; `run` evaluates an expression there."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, expression):
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().strip()

    def run(self, expression):
        self.tell(expression)
        return self.hear()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(30)


@pytest.fixture
def site(open_site, tmp_path):
    return open_site(PROGRAM, tmp_path / "site.db")


@pytest.fixture
def child(site):
    child = Child(site._store.path)
    yield child
    child.end()


def test_writing_in_turns_keeps_all_views_right(site, child):
    for step in range(12):
        assert child.run(f"site.insert('t', [({step}, {step % 3}), ({step + 1}, {step % 2})])") in "12"
        site.insert("k", [(step % 4, step)])
        site.execute("UPDATE t SET b = b + 1 WHERE a = ?", [step])
        assert child.run(f"site.execute('DELETE FROM t WHERE a = {step - 2}')").isdigit()
        assert child.run("site.rows('sums')") == repr(site.rows("sums"))
    assert_fresh(site)
    assert child.run("site.status()['commits']") == str(site.status()["commits"])


def test_a_second_writing_process_waits(site, child):
    child.run("site.rows('t')")
    with site.transaction():
        site.insert("t", [(1, 1)])
        child.tell("site.insert('t', [(2, 2)])")
        time.sleep(0.3)
        assert site.rows("t") == [(1, 1)]
    assert child.hear() == "1"
    assert site.rows("t") == [(1, 1), (2, 2)]
    assert_fresh(site)


def test_after_five_seconds_it_gives_up_and_can_try_again(site, child):
    raw = site._store.writer.connection
    assert child.run("site.rows('t')") == "[]"
    with site.transaction():
        site.insert("t", [(1, 1)])
        started = time.monotonic()
        child.tell("site.insert('t', [(2, 2)])")
        said = child.hear()
        assert 4.5 < time.monotonic() - started < 9
        assert said.startswith("StoreError")
        assert "another process is writing" in said
        assert child.run("site.rows('t')") == "[]"
    assert raw.in_transaction is False
    assert child.run("site.insert('t', [(2, 2)])") == "1"
    assert_fresh(site)


def test_a_lock_that_something_else_holds(site):
    site._store.writer.connection.execute("PRAGMA busy_timeout = 100")
    other = sqlite3.connect(site._store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        for _ in range(2):
            with pytest.raises(ev.StoreError, match="try again") as caught:
                site.insert("t", [(1, 1)])
            assert caught.value.path == site._store.path
            assert site.rows("t") == []
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert site.insert("t", [(1, 1)]) == 1
    assert_fresh(site)
