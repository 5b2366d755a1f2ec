"""Watches are told of every commit's net change, in the committing thread, and not at first."""

import threading

import pytest
from tests.site.checks import assert_fresh

import everview as ev

PROGRAM = """
CREATE TABLE t (a BIGINT, b BIGINT);
CREATE TABLE bag (a BIGINT, f DOUBLE, d DATE) WITH (semantics = 'bag');
CREATE TABLE log (n BIGINT) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW dups AS SELECT b FROM t;
CREATE MATERIALIZED VIEW sums AS SELECT b, count(*) AS n FROM t GROUP BY b;
CREATE MATERIALIZED VIEW big AS SELECT n, count(*) AS c FROM sums WHERE n > 1 GROUP BY n;
CREATE MATERIALIZED VIEW firsts AS SELECT a FROM t ORDER BY a LIMIT 2;
CREATE MATERIALIZED VIEW sides AS SELECT x.a, y.a AS other FROM t AS x LEFT JOIN t AS y ON x.b = y.a;
CREATE MATERIALIZED VIEW ranks AS SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS r FROM t;
CREATE MATERIALIZED VIEW rest AS SELECT a FROM t EXCEPT SELECT b FROM t;
CREATE MATERIALIZED VIEW renamed AS SELECT a AS x, b AS y FROM t;
CREATE MATERIALIZED VIEW total AS SELECT sum(f) AS f FROM bag;
"""
VIEWS = ["t", "dups", "sums", "big", "firsts", "sides", "ranks", "rest", "renamed"]


@pytest.fixture
def site(open_site):
    return open_site(PROGRAM)


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_told_adds_up_to_what_is_there(site, name):
    """Whoever starts from the rows and adds every change has the rows, whatever the view."""
    site.insert("t", [(1, 1)])
    mirror = {}
    for row in site.rows(name):
        mirror[row] = mirror.get(row, 0) + 1

    def follow(changes):
        rows = [row for row, _ in changes]
        assert len(rows) == len(set(rows))
        assert changes
        for row, weight in changes:
            assert weight != 0
            mirror[row] = mirror.get(row, 0) + weight

    site.watch(name, follow)
    writes = [
        lambda: site.insert("t", [(2, 1), (3, 1), (0, 2)]),
        lambda: site.insert("t", [(2, 1)]),
        lambda: site.delete("t", [(1, 1), (9, 9)]),
        lambda: site.execute("UPDATE t SET b = a"),
        lambda: site.execute("UPDATE t SET a = a + 1"),
        lambda: site.execute("DELETE FROM t"),
        lambda: site.insert("t", [(1, None), (None, None), (None, 1)]),
    ]
    for write in writes:
        write()
        shown = sorted(map(repr, (row for row, n in mirror.items() for _ in range(n))))
        assert shown == sorted(map(repr, site.rows(name)))
        assert all(n >= 0 for n in mirror.values())
    assert_fresh(site)


def test_it_is_not_told_at_first_nor_when_nothing_changed(site):
    site.insert("t", [(1, 1)])
    told = []
    site.watch("t", told.append)
    site.insert("t", [(1, 1)])
    site.delete("t", [(5, 5)])
    site.insert("log", [(1,)])
    with site.transaction():
        site.insert("t", [(2, 2)])
        site.delete("t", [(2, 2)])
    with pytest.raises(KeyError), site.transaction():  # noqa: PT012
        site.insert("t", [(2, 2)])
        raise KeyError
    assert told == []
    site.insert("t", [(3, 3)])
    assert told == [[((3, 3), 1)]]


def test_values_and_weights(site):
    import datetime as dt
    import math

    told = []
    site.watch("bag", told.append)
    site.watch("total", told.append)
    row = (1, math.nan, dt.date(2024, 1, 1))
    site.insert("bag", [row] * 3)
    site.delete("bag", [row] * 2)
    (change,), total, (less,) = told
    assert repr(change) == repr((row, 3))
    assert repr(sorted(total, key=lambda c: c[1])) == repr([((None,), -1), ((math.nan,), 1)])
    assert repr(less) == repr((row, -2))


def test_cancel(site):
    told, others = [], []
    first, second = site.watch("t", told.append), site.watch("t", told.append)
    site.watch("dups", others.append)
    site.insert("t", [(1, 1)])
    assert len(told) == 2
    first.cancel()
    first.cancel()
    site.insert("t", [(2, 2)])
    assert len(told) == 3
    second.cancel()
    site.insert("t", [(3, 3)])
    assert len(told) == 3
    assert len(others) == 3


def test_a_watch_cancelled_while_others_are_told_is_silent(site):
    told = []
    watches = []
    site.watch("t", lambda changes: watches[0].cancel())
    watches.append(site.watch("t", told.append))
    site.insert("t", [(1, 1)])
    assert told == []


def test_an_exception_reaches_the_writer_and_the_commit_stands(site):
    told = []

    def broken(changes):
        raise ZeroDivisionError("mine")

    site.watch("t", broken)
    site.watch("t", told.append)
    with pytest.raises(ZeroDivisionError) as caught:
        site.insert("t", [(1, 1)])
    assert "the commit stands" in caught.value.__notes__[0]
    assert site.rows("t") == [(1, 1)]
    assert told == [[((1, 1), 1)]]
    site.watch("dups", broken)
    with pytest.raises(ExceptionGroup) as group:
        site.insert("t", [(2, 2)])
    assert len(group.value.exceptions) == 2
    assert len(site.rows("t")) == 2


def test_a_callback_may_query_and_sees_the_commit(site):
    seen = []
    site.watch("sums", lambda changes: seen.append((site.rows("sums"), site.query("SELECT n FROM big"))))
    site.insert("t", [(1, 1), (2, 1)])
    assert seen == [([(1, 2)], [{"n": 2}])]


def test_a_callback_may_write_and_commits_are_told_in_order(site):
    heard = {"first": [], "second": []}

    def first(changes):
        heard["first"].append(changes)
        ((a, _), _) = changes[0]
        if a < 3:
            site.insert("t", [(a + 1, 0)])

    site.watch("t", first)
    site.watch("t", heard["second"].append)
    site.insert("t", [(1, 0)])
    assert [changes[0][0][0] for changes in heard["first"]] == [1, 2, 3]
    assert heard["second"] == heard["first"]
    assert_fresh(site)


def test_a_watch_begun_by_a_callback_hears_only_later_commits(site):
    told = []
    once = []

    def begin(changes):
        if not once:
            once.append(site.watch("t", told.append))

    site.watch("t", begin)
    site.insert("t", [(1, 1)])
    assert told == []
    site.insert("t", [(2, 2)])
    assert told == [[((2, 2), 1)]]


def test_a_callback_cannot_spoil_what_others_hear(site):
    told = []
    site.watch("t", lambda changes: changes.clear())
    site.watch("t", told.append)
    site.insert("t", [(1, 1)])
    assert told == [[((1, 1), 1)]]


def test_it_is_told_in_the_committing_thread(open_site, tmp_path):
    site = open_site(PROGRAM, tmp_path / "site.db")
    threads = []
    site.watch("t", lambda changes: threads.append(threading.get_ident()))
    thread = threading.Thread(target=lambda: site.insert("t", [(1, 1)]))
    thread.start()
    thread.join()
    site.insert("t", [(2, 2)])
    assert threads == [thread.ident, threading.get_ident()]


def test_a_watch_begins_between_commits(site):
    with site.transaction(), pytest.raises(ev.StoreError, match="outside"):
        site.watch("t", print)
