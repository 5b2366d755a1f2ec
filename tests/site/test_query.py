"""Queries: read-only SELECTs over relations and views; strict where views are lenient."""

import pytest
from tests.site.checks import assert_fresh

import everview as ev

PROGRAM = """
CREATE TABLE t (a BIGINT, b BIGINT, c TEXT);
CREATE MATERIALIZED VIEW ratio AS SELECT a, a / b AS q, CAST(c AS BIGINT) AS n FROM t;
CREATE MATERIALIZED VIEW over_ratio AS SELECT sum(q) AS q FROM ratio;
"""


@pytest.fixture
def site(open_site):
    site = open_site(PROGRAM)
    site.insert("t", [(6, 3, "1"), (5, 2, "2")])
    return site


def test_rows_are_dicts_in_the_order_asked_for(site):
    assert site.query("SELECT a, q AS ratio FROM ratio ORDER BY a") == [
        {"a": 5, "ratio": 2},
        {"a": 6, "ratio": 2},
    ]
    assert [row["a"] for row in site.query("SELECT a FROM t ORDER BY a DESC")] == [6, 5]
    assert site.query("SELECT a FROM t ORDER BY a LIMIT ? OFFSET ?", (1, 1)) == [{"a": 6}]
    assert site.query("SELECT q FROM ratio UNION ALL SELECT q FROM over_ratio ORDER BY q") == [
        {"q": 2},
        {"q": 2},
        {"q": 4},
    ]
    assert site.query("SELECT a FROM t WHERE a > :low AND a < :low + 5", {"low": 5}) == [{"a": 6}]
    assert site.query("SELECT 1 AS one") == [{"one": 1}]


def test_two_columns_of_one_name_would_lose_one(site):
    with pytest.raises(ev.ProgramError, match="two columns a"):
        site.query("SELECT a, a FROM t")
    assert site.query("SELECT a, a AS again FROM t WHERE a = 5") == [{"a": 5, "again": 5}]


@pytest.mark.parametrize(
    "sql", ["SELECT", "SELECT nope FROM t", "SELECT a FROM t WHERE", "SELECT a FROM t; SELECT a FROM t", "x"]
)
def test_bad_sql_is_a_program_error(site, sql):
    with pytest.raises(ev.ProgramError):
        site.query(sql)


def test_a_program_error_says_where(site):
    with pytest.raises(ev.ProgramError) as caught:
        site.query("SELECT a,\n  bb FROM t")
    assert (caught.value.line, caught.value.column) == (2, 3)
    assert caught.value.hint


def test_an_unknown_name_is_a_data_error(site):
    for ask in (
        lambda: site.query("SELECT a FROM nothing"),
        lambda: site.rows("nothing"),
        lambda: site.why("nothing", (1,)),
        lambda: site.explain("nothing"),
        lambda: site.watch("nothing", print),
        lambda: site.execute("INSERT INTO t SELECT a, a, c FROM nothing"),
    ):
        with pytest.raises(ev.DataError):
            ask()


@pytest.mark.parametrize("row", [(1, 0, "1"), (1, 1, "one"), (-(2**63), -1, "1")])
def test_what_fails_is_null_in_a_view_and_an_error_in_a_query(site, row):
    assert site.status()["failed_expressions"] == 0
    site.insert("t", [row])
    view = site.query("SELECT q, n FROM ratio WHERE a = ?", [row[0]])
    assert None in view[0].values()
    assert site.status()["failed_expressions"] > 0
    with pytest.raises(ev.DataError):
        site.query("SELECT a / b AS q, CAST(c AS BIGINT) AS n FROM t")
    assert site.query("SELECT a FROM t WHERE a = 5") == [{"a": 5}]
    assert_fresh(site)


def test_only_commits_count_failures(site):
    site.insert("t", [(1, 0, "1")])
    failed = site.status()["failed_expressions"]
    for _ in range(3):
        assert site.rows("ratio")
        assert site.why("ratio", (1, None, 1))
        assert_fresh(site)
    site.insert("t", [(100, 10, "4")])
    assert site.status()["failed_expressions"] == failed > 0


def test_a_failure_that_is_undone_is_not_counted(site):
    with pytest.raises(KeyError), site.transaction():  # noqa: PT012
        site.insert("t", [(1, 0, "1")])
        raise KeyError
    with site.transaction():
        with pytest.raises(ev.DataError):
            site.execute("INSERT INTO t VALUES (1, 0, 'x'), (1 / 0, 0, 'x')")
        site.insert("t", [(9, 3, "3")])
    assert site.status()["failed_expressions"] == 0


def test_a_query_writes_nothing(site):
    before = site.status()["commits"]
    site.query("SELECT * FROM ratio")
    assert site.status()["commits"] == before


def test_status(site):
    status = site.status()
    assert status["relations"] == {"t": 2}
    assert status["views"] == {"ratio": 2, "over_ratio": 1}
    assert status["commits"] == 1
