"""Transactions: all or nothing, fresh inside, and a statement that fails fails alone."""

import sqlite3
import threading

import pytest
from tests.site.checks import assert_fresh

import everview as ev

PROGRAM = """
CREATE TABLE t (a BIGINT NOT NULL, b BIGINT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
CREATE MATERIALIZED VIEW sums AS SELECT a, sum(b) AS s FROM t GROUP BY a;
CREATE MATERIALIZED VIEW top AS SELECT a, s FROM sums ORDER BY s DESC LIMIT 1;
CREATE MATERIALIZED VIEW pairs AS SELECT DISTINCT x.a, y.b FROM t AS x JOIN t AS y ON x.b = y.a;
"""


@pytest.fixture(params=["memory", "file"])
def site(request, open_site, tmp_path):
    return open_site(PROGRAM, ":memory:" if request.param == "memory" else tmp_path / "site.db")


def test_it_sees_its_own_writes_and_fresh_views(site):
    with site.transaction() as inside:
        assert inside is site
        site.insert("t", [(1, 5), (2, 7)])
        assert site.rows("top") == [(2, 7)]
        site.execute("UPDATE t SET b = 9 WHERE a = 1")
        assert site.query("SELECT a FROM top") == [{"a": 1}]
        assert site.status()["views"]["sums"] == 2
        assert str(site.why("top", (1, 9)))
        site.delete("t", [(1, 9)])
        assert site.rows("top") == [(2, 7)]
    assert site.rows("t") == [(2, 7)]
    assert_fresh(site)


def test_others_see_it_only_when_it_is_done(open_site, tmp_path):
    site = open_site(PROGRAM, tmp_path / "site.db")
    seen = []

    def look():
        seen.append((site.rows("t"), site.rows("sums")))

    with site.transaction():
        site.insert("t", [(1, 1)])
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    look()
    assert seen == [([], []), ([(1, 1)], [(1, 1)])]


@pytest.mark.parametrize("error", [KeyError, ev.DataError, KeyboardInterrupt])
def test_an_exception_undoes_it(site, error):
    site.insert("t", [(1, 1)])
    commits = site.status()["commits"]
    with pytest.raises(error), site.transaction():  # noqa: PT012
        site.insert("t", [(2, 2)])
        site.execute("DELETE FROM t WHERE a = 1")
        raise error("no")
    assert site.rows("t") == [(1, 1)]
    assert site.status()["commits"] == commits
    assert site.insert("t", [(2, 2)]) == 1
    assert_fresh(site)


def test_a_transaction_is_one_commit(site):
    with site.transaction():
        site.insert("t", [(1, 1)])
        site.insert("t", [(2, 2)])
    assert site.status()["commits"] == 1


def test_they_do_not_nest(site):
    with site.transaction():
        site.insert("t", [(1, 1)])
        with pytest.raises(ev.StoreError, match="nest"), site.transaction():
            pass
        site.insert("t", [(2, 2)])
    assert len(site.rows("t")) == 2


FAILING = [
    lambda site: site.insert("t", [(3, 3), (None, 1)]),
    lambda site: site.insert("t", [(3, 3), ("x", 1)]),
    lambda site: site.execute("UPDATE t SET a = 1 / b"),
    lambda site: site.execute("INSERT INTO t SELECT a + 5, 1 / b FROM t"),
    lambda site: site.execute("INSERT INTO t SELECT NULL, a FROM t"),
    lambda site: site.query("SELECT 1 / b AS q FROM t"),
    lambda site: site.insert("sums", [(1, 1)]),
    lambda site: site.execute("UPDATE"),
]


@pytest.mark.parametrize("failing", FAILING)
def test_a_statement_that_fails_fails_alone(site, failing):
    with site.transaction():
        site.insert("t", [(1, 0), (2, 4)])
        with pytest.raises(ev.EverviewError):
            failing(site)
        site.insert("t", [(4, 4)])
    assert site.rows("t") == [(1, 0), (2, 4), (4, 4)]
    assert_fresh(site)


def test_a_statement_that_fails_half_way_is_undone_with_its_views(site, monkeypatch):
    """An UPDATE deletes, then inserts; when the second fails the first is undone, for watches too."""
    site.insert("t", [(1, 1), (2, 2)])
    told = []
    for name in ("t", "sums", "pairs"):
        site.watch(name, lambda changes, name=name: told.append((name, changes)))
    with site.transaction():
        site.insert("t", [(3, 3)])

        def broken(*_arguments):
            raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patch:
            patch.setattr(type(site._store.engine), "insert", broken)
            with pytest.raises(ev.StoreError):
                site.execute("UPDATE t SET b = 8 WHERE a = 1")
        assert site.rows("t") == [(1, 1), (2, 2), (3, 3)]
        assert_fresh(site) if site._store.in_memory else None
    assert sorted(told) == [
        ("pairs", [((3, 3), 1)]),
        ("sums", [((3, 3), 1)]),
        ("t", [((3, 3), 1)]),
    ]
    assert_fresh(site)


def test_an_interrupted_circuit_leaves_nothing_behind(site, monkeypatch):
    """Deltas lie in temporary tables; what is left in them must not get into the next commit."""
    site.insert("t", [(1, 1)])
    run = type(site._store.engine.circuit).run

    def broken(self, connection, *changed, **known):
        run(self, connection, *changed, **known)
        raise KeyboardInterrupt

    for inside in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(type(site._store.engine.circuit), "run", broken)
            if inside:
                with site.transaction(), pytest.raises(KeyboardInterrupt):
                    site.insert("t", [(1, 7)])
            else:
                with pytest.raises(KeyboardInterrupt):
                    site.insert("t", [(1, 7)])
        assert site.rows("t") == [(1, 1)]
        site.insert("t", [(2, 2)])
        site.delete("t", [(2, 2)])
        assert_fresh(site)


def test_errors_of_others_are_left_alone(site):
    """An error of the caller's own database is not one of ours."""
    with pytest.raises(sqlite3.OperationalError), site.transaction():
        sqlite3.connect(":memory:").execute("SELECT * FROM nothing")
    assert site.insert("t", [(1, 1)]) == 1


def test_a_key_written_twice_keeps_the_last_write(site):
    told = []
    site.watch("k", told.extend)
    with site.transaction():
        site.insert("k", [(1, 1)])
        site.insert("k", [(1, 2)])
        site.delete("k", [(1,)])
        site.insert("k", [(1, 3)])
    assert site.rows("k") == [(1, 3)]
    assert told == [((1, 3), 1)]


def test_closing_inside_is_refused(site):
    with site.transaction():
        site.insert("t", [(1, 1)])
        with pytest.raises(ev.StoreError, match="transaction"):
            site.close()
    assert site.rows("t") == [(1, 1)]
