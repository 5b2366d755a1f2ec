"""A small commit runs few statements, and the same ones each time."""

import sqlite3
from contextlib import suppress

import pytest

import everview as ev

PROGRAM = """
CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE TABLE s (k BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE TABLE t (id BIGINT PRIMARY KEY, b BIGINT);
CREATE MATERIALIZED VIEW projection AS SELECT b, c FROM r;
CREATE MATERIALIZED VIEW joined AS SELECT r.a, s.k FROM r JOIN s ON r.c = s.c;
CREATE MATERIALIZED VIEW grouped AS SELECT b, count(*) AS n, sum(c) AS t, max(c) AS most FROM r GROUP BY b;
CREATE MATERIALIZED VIEW pairs AS SELECT x.a, y.a AS z FROM r x JOIN r y ON x.b = y.b;
CREATE MATERIALIZED VIEW colours AS SELECT DISTINCT b FROM t;
"""


@pytest.fixture
def site():
    with ev.Site.open(":memory:", ev.Program.parse(PROGRAM)) as opened:
        opened.insert("s", [(1, 1), (2, 1)])
        opened.insert("r", [(1, 1, 1), (2, 1, 2)])
        yield opened


def statements(site, write):
    seen = []
    site._store.writer.connection.set_trace_callback(seen.append)
    write()
    site._store.writer.connection.set_trace_callback(None)
    return seen


def test_an_insertion_sweeps_nothing_but_the_self_join(site):
    seen = statements(site, lambda: site.insert("r", [(3, 1, 1)]))
    assert len(seen) == 12  # begin, number, stage, relation, ledger, four views, one sweep, clear, commit
    assert sum("WHERE w = 0" in sql for sql in seen) == 1


def test_a_deletion_sweeps_what_may_be_empty(site):
    assert site.delete("r", [(1, 1, 1)]) == 1
    assert site.rows("projection") == [(1, 2)]
    assert site.rows("joined") == []
    assert site.rows("grouped") == [(1, 1, 2, 2)]
    seen = statements(site, lambda: site.delete("r", [(2, 1, 2)]))
    assert sum(sql.startswith("DELETE") and "= 0" in sql for sql in seen) == 4
    assert site.rows("grouped") == site.rows("pairs") == []


def test_a_keyed_insertion_takes_the_replaced_row_out_of_the_views(site):
    site.insert("t", [(1, 5)])
    site.insert("t", [(1, 6)])
    assert site.rows("colours") == [(6,)]


def test_a_row_that_is_there_already_changes_nothing(site):
    before = {name: site.rows(name) for name in site.program.views}
    assert site.insert("r", [(1, 1, 1)]) == 0
    assert site.delete("r", [(9, 9, 9)]) == 0
    assert {name: site.rows(name) for name in site.program.views} == before


def test_the_number_of_a_commit_outlives_rollbacks_and_other_writers(tmp_path):
    path = tmp_path / "store.db"
    with ev.Site.open(path, ev.Program.parse(PROGRAM)) as one, ev.Site.open(path) as other:
        one.insert("r", [(1, 1, 1)])
        other.insert("r", [(2, 1, 1)])
        with suppress(ZeroDivisionError), one.transaction():
            one.insert("r", [(3, 1, 1)])
            raise ZeroDivisionError
        one.insert("r", [(4, 1, 1)])
        other.insert("r", [(5, 1, 1)])
        assert one.status()["commits"] == 4
    plain = sqlite3.connect(path)
    table = "everview_r0"
    assert plain.execute(f"SELECT c0, version FROM {table} ORDER BY 1").fetchall() == [
        (1, 1),
        (2, 2),
        (4, 3),
        (5, 4),
    ]
    plain.close()


def test_commits_are_durable(tmp_path):
    with ev.Site.open(tmp_path / "store.db", ev.Program.parse(PROGRAM)) as site:
        connection = site._store.writer.connection
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
