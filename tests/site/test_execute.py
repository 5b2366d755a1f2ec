"""INSERT, UPDATE and DELETE as SQL: what they do, return and refuse."""

import pytest
from tests.site.checks import assert_fresh

import everview as ev

PROGRAM = """
CREATE TABLE s (a BIGINT, b TEXT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT NOT NULL);
CREATE TABLE bag (a BIGINT) WITH (semantics = 'bag');
CREATE TABLE aw (a BIGINT) WITH (semantics = 'add_wins');
CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n, count(*) AS c FROM k;
CREATE MATERIALIZED VIEW joined AS SELECT k.id, s.b FROM k JOIN s ON s.a = k.n;
CREATE MATERIALIZED VIEW per_a AS SELECT a, count(*) AS c FROM bag GROUP BY a;
"""


@pytest.fixture
def site(open_site):
    return open_site(PROGRAM)


def test_insert_returns_the_rows_that_appeared(site):
    assert site.execute("INSERT INTO s VALUES (1, 'x'), (2, NULL), (1, 'x')") == 2
    assert site.execute("INSERT INTO s (b, a) VALUES ('y', 3)") == 1
    assert site.execute("INSERT INTO s (a) VALUES (3)") == 1
    assert site.execute("INSERT INTO s VALUES (1, 'x')") == 0
    assert site.execute("INSERT INTO bag VALUES (1), (1)") == 2
    assert site.rows("s") == [(1, "x"), (2, None), (3, "y"), (3, None)]
    assert_fresh(site)


def test_insert_select_reads_the_state_before(site):
    site.insert("bag", [(1,), (2,)])
    assert site.execute("INSERT INTO bag SELECT a + 10 FROM bag") == 2
    assert site.execute("INSERT INTO k SELECT a, c FROM per_a") == 4
    assert site.rows("bag") == [(1,), (2,), (11,), (12,)]
    assert_fresh(site)


def test_delete_returns_the_rows_that_disappeared(site):
    site.insert("bag", [(1,), (1,), (2,)])
    assert site.execute("DELETE FROM bag WHERE a = 1") == 2
    site.insert("k", [(1, 1), (2, 2)])
    assert site.execute("DELETE FROM k WHERE n > ?", [1]) == 1
    assert site.execute("DELETE FROM k WHERE id IN (SELECT a FROM s)") == 0
    assert site.execute("DELETE FROM k") == 1
    assert site.rows("bag") == [(2,)]
    assert_fresh(site)


def test_update_returns_the_rows_found(site):
    site.insert("k", [(1, 1), (2, 2), (3, 3)])
    assert site.execute("UPDATE k SET n = n WHERE id < 3") == 2
    assert site.execute("UPDATE k SET n = n + 10 WHERE id < 3") == 2
    assert site.execute("UPDATE k SET n = 0 WHERE id = 99") == 0
    assert site.rows("k") == [(1, 11), (2, 12), (3, 3)]
    assert_fresh(site)


def test_update_swaps_keys(site):
    site.insert("k", [(1, 10), (2, 20), (3, 30)])
    assert site.execute("UPDATE k SET id = 3 - id WHERE id < 3") == 2
    assert site.rows("k") == [(1, 20), (2, 10), (3, 30)]
    assert site.execute("UPDATE k SET id = id + 1") == 3
    assert site.rows("k") == [(2, 20), (3, 10), (4, 30)]
    assert_fresh(site)


def test_update_into_one_key_keeps_the_greatest_old_row(site):
    site.insert("k", [(3, 30), (1, 10), (2, 20), (7, 70)])
    assert site.execute("UPDATE k SET id = 7 WHERE id < 7") == 3
    assert site.rows("k") == [(7, 30)]
    assert_fresh(site)


def test_update_of_a_set_may_merge_rows(site):
    site.insert("s", [(1, "x"), (2, "x"), (3, "y")])
    assert site.execute("UPDATE s SET a = 9 WHERE b = 'x'") == 2
    assert site.rows("s") == [(3, "y"), (9, "x")]
    assert site.execute("UPDATE s SET a = a + 6 WHERE a = 3") == 1
    assert site.rows("s") == [(9, "x"), (9, "y")]


def test_a_chain_of_updates_leaves_rows_that_stay_untouched(site):
    for name in ("s", "bag", "aw"):
        told = []
        site.insert(name, [(n,) if name != "s" else (n, "x") for n in (1, 2, 3)])
        watch = site.watch(name, told.extend)
        assert site.execute(f"UPDATE {name} SET a = a + 1") == 3
        watch.cancel()
        assert sorted((row[0], weight) for row, weight in told) == [(1, -1), (4, 1)]
    assert_fresh(site)


def test_parameters(site):
    assert site.execute("INSERT INTO s VALUES (?, ?)", (1, "x")) == 1
    assert site.execute("INSERT INTO s VALUES (:a, :b)", {"a": 2, "b": None}) == 1
    assert site.execute("UPDATE s SET b = :b WHERE a = :a OR b = :b", {"a": 2, "b": "z"}) == 1
    assert site.rows("s") == [(1, "x"), (2, "z")]
    bad = [
        ("INSERT INTO s VALUES (?, ?)", (1,)),
        ("INSERT INTO s VALUES (?, ?)", (1, "x", 2)),
        ("INSERT INTO s VALUES (?, ?)", None),
        ("INSERT INTO s VALUES (?, ?)", ("1", "x")),
        ("INSERT INTO s VALUES (?, ?)", (True, "x")),
        ("INSERT INTO s VALUES (:a, 'x')", {"b": 1}),
    ]
    for sql, params in bad:
        with pytest.raises(ev.DataError):
            site.execute(sql, params)
    assert len(site.rows("s")) == 2


def test_not_null_holds_in_sql_too(site):
    site.insert("k", [(1, 1)])
    for sql in (
        "INSERT INTO k VALUES (2, NULL)",
        "INSERT INTO k (id) VALUES (2)",
        "INSERT INTO k SELECT a, a FROM s",
        "UPDATE k SET n = NULL",
        "UPDATE k SET id = (SELECT a FROM s)",
    ):
        site.insert("s", [(None, "x")])
        with pytest.raises(ev.DataError, match="NOT NULL") as caught:
            site.execute(sql)
        assert caught.value.relation == "k"
    assert site.rows("k") == [(1, 1)]


def test_expressions_that_fail_in_a_write_refuse_it(site):
    site.insert("k", [(1, 1), (2, 0)])
    for sql in (
        "UPDATE k SET n = 10 / n",
        "DELETE FROM k WHERE 1 / n = 1",
        "INSERT INTO bag SELECT 1 / n FROM k",
        "INSERT INTO bag VALUES (9223372036854775807 + 1)",
    ):
        with pytest.raises(ev.DataError):
            site.execute(sql)
    assert site.rows("k") == [(1, 1), (2, 0)]
    assert site.status()["failed_expressions"] == 0


@pytest.mark.parametrize("name", ["total", "nothing"])
@pytest.mark.parametrize("sql", ["INSERT INTO {} VALUES (1)", "DELETE FROM {}", "UPDATE {} SET c = 1"])
def test_a_view_or_an_unknown_name_as_target_is_a_data_error(site, name, sql):
    with pytest.raises(ev.DataError) as caught:
        site.execute(sql.format(name))
    assert caught.value.relation == name


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO s VALUES (1",
        "INSERT INTO s VALUES (1, 'x', 2)",
        "INSERT INTO s (a, a) VALUES (1, 2)",
        "INSERT INTO s (nope) VALUES (1)",
        "INSERT INTO s VALUES ('x', 'x' || 1 || ",
        "UPDATE s SET nope = 1",
        "DELETE FROM s WHERE nope = 1",
        "DROP TABLE s",
        "CREATE TABLE z (a BIGINT)",
        "INSERT INTO s VALUES (1, 'x'); INSERT INTO s VALUES (2, 'y')",
        "INSERT INTO s VALUES (1, 'x') RETURNING a",
        "PRAGMA user_version = 9",
        "",
    ],
)
def test_bad_sql_is_a_program_error(site, sql):
    with pytest.raises(ev.ProgramError):
        site.execute(sql)
    assert site.rows("s") == []


def test_each_statement_has_its_place(site):
    with pytest.raises(ev.DataError, match=r"query\(\)"):
        site.execute("SELECT 1 AS one")
    with pytest.raises(ev.DataError, match=r"execute\(\)"):
        site.query("DELETE FROM s")
