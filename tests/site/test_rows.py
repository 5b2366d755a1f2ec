"""Rows at the door of each kind of relation, and what insert and delete count."""

import math

import pytest
from tests.site.checks import assert_fresh

import everview as ev

PROGRAM = """
CREATE TABLE s (a BIGINT, b TEXT);
CREATE TABLE k (id BIGINT, b TEXT, n BIGINT, PRIMARY KEY (id));
CREATE TABLE k2 (a BIGINT, b TEXT, c TEXT, PRIMARY KEY (b, a));
CREATE TABLE every_key (a BIGINT, b BIGINT, PRIMARY KEY (b, a));
CREATE TABLE bag (a BIGINT, b TEXT) WITH (semantics = 'bag');
CREATE TABLE aw (a BIGINT, b TEXT) WITH (semantics = 'add_wins');
CREATE TABLE strict (a BIGINT NOT NULL, b TEXT);
CREATE MATERIALIZED VIEW n_s AS SELECT count(*) AS n FROM s;
CREATE MATERIALIZED VIEW all_b AS
    SELECT b FROM s UNION ALL SELECT b FROM k UNION ALL SELECT b FROM bag UNION ALL SELECT b FROM aw;
"""


@pytest.fixture
def site(open_site):
    return open_site(PROGRAM)


def test_mappings_sequences_and_missing_keys(site):
    assert site.insert("s", [{"b": "x", "a": 1}, (2, "y"), [3, None], {"a": 4}, {}]) == 5
    assert site.rows("s") == [(1, "x"), (2, "y"), (3, None), (4, None), (None, None)]
    assert site.insert("s", iter([(9, "i")])) == 1
    assert site.insert("s", []) == 0


@pytest.mark.parametrize(
    ("row", "column"),
    [({"a": 1, "c": 2}, "c"), ({"A": 1}, "A"), ((1,), None), ((1, "x", 2), None), ("ab", None), (5, None)],
)
@pytest.mark.parametrize("verb", ["insert", "delete"])
def test_what_is_no_row_is_refused(site, row, column, verb):
    with pytest.raises(ev.DataError) as caught:
        getattr(site, verb)("s", [(7, "fine"), row])
    assert caught.value.relation == "s"
    assert caught.value.column == column
    assert site.rows("s") == []


def test_a_set_counts_rows_that_appear_and_disappear(site):
    assert site.insert("s", [(1, "x"), (1, "x"), (2, None), (2, None)]) == 2
    assert site.insert("s", [(1, "x"), (3, "z")]) == 1
    assert site.delete("s", [(2, None), (2, None), (8, "absent")]) == 1
    assert site.delete("s", [(2, None)]) == 0
    assert site.insert("s", [(2, None)]) == 1
    assert site.rows("s") == [(1, "x"), (2, None), (3, "z")]
    assert_fresh(site)


def test_a_keyed_relation_keeps_the_last_row_of_a_key(site):
    assert site.insert("k", [(1, "a", 1), (2, "b", 2)]) == 2
    assert site.insert("k", [(1, "a", 1)]) == 0
    assert site.insert("k", [(1, "c", None)]) == 1
    assert site.insert("k", [(3, "x", 1), (3, "y", 2)]) == 1
    assert site.rows("k") == [(1, "c", None), (2, "b", 2), (3, "y", 2)]
    assert_fresh(site)


@pytest.mark.parametrize("given", [(1,), (1, "other", 99), {"id": 1}, {"id": 1, "b": "other"}, [1]])
def test_a_keyed_relation_is_deleted_from_by_key_or_row(site, given):
    site.insert("k", [(1, "a", 1), (2, "b", 2)])
    assert site.delete("k", [given]) == 1
    assert site.delete("k", [given]) == 0
    assert site.rows("k") == [(2, "b", 2)]
    assert site.insert("k", [(1, "again", 3)]) == 1
    assert_fresh(site)


def test_a_key_is_given_in_its_own_order_and_a_row_in_the_columns_order(site):
    site.insert("k2", [(1, "x", "c"), (2, "y", "d")])
    assert site.delete("k2", [("x", 1), (2, "y", "whatever")]) == 2
    site.insert("every_key", [(1, 2)])
    assert site.delete("every_key", [(2, 1)]) == 0
    assert site.delete("every_key", [(1, 2)]) == 1


@pytest.mark.parametrize("given", [{"b": "x"}, {"id": None}, (1, 2), ("1",), {"id": 1, "zz": 1}, 1, "1"])
def test_what_is_neither_key_nor_row_is_refused(site, given):
    site.insert("k", [(1, "a", 1)])
    with pytest.raises(ev.DataError):
        site.delete("k", [given])
    assert site.rows("k") == [(1, "a", 1)]


def test_a_bag_counts_copies(site):
    assert site.insert("bag", [(1, "x"), (1, "x"), (2, None)]) == 3
    assert site.insert("bag", [(1, "x")]) == 1
    assert site.rows("bag") == [(1, "x")] * 3 + [(2, None)]
    assert site.delete("bag", [(1, "x")]) == 1
    assert site.delete("bag", [(1, "x")] * 5 + [(3, "absent")]) == 2
    assert site.delete("bag", [(1, "x")]) == 0
    assert site.insert("bag", [(1, "x")]) == 1
    assert site.rows("bag") == [(1, "x"), (2, None)]
    assert_fresh(site)


def test_add_wins_counts_rows_not_insertions(site):
    assert site.insert("aw", [(1, "x"), (1, "x"), (2, None)]) == 2
    assert site.insert("aw", [(1, "x")]) == 0
    assert site.delete("aw", [(1, "x"), (1, "x")]) == 1
    assert site.delete("aw", [(1, "x")]) == 0
    assert site.insert("aw", [(1, "x")]) == 1
    assert site.rows("aw") == [(1, "x"), (2, None)]
    assert_fresh(site)


def test_not_null(site):
    for row in [(None, "x"), {"b": "x"}]:
        with pytest.raises(ev.DataError, match="NOT NULL") as caught:
            site.insert("strict", [row])
        assert (caught.value.relation, caught.value.column) == ("strict", "a")
    with pytest.raises(ev.DataError):
        site.insert("k", [(None, "x", 1)])


@pytest.mark.parametrize("name", ["n_s", "nothing", ""])
def test_only_relations_are_written_to(site, name):
    for write in (site.insert, site.delete):
        with pytest.raises(ev.DataError) as caught:
            write(name, [(1,)])
        assert caught.value.relation == name


def test_rows_are_sorted_column_by_column_nulls_last_and_nan_greatest(open_site):
    site = open_site("CREATE TABLE d (x DOUBLE, t TEXT) WITH (semantics = 'bag')")
    rows = [
        (-math.inf, "a"),
        (-1.5, None),
        (0.0, "Z"),
        (0.0, "a"),
        (0.0, "é"),
        (0.0, "𝄞"),
        (math.inf, "a"),
        (math.nan, "a"),
        (math.nan, "a"),
        (None, "a"),
        (None, None),
    ]
    site.insert("d", reversed(rows))
    assert repr(site.rows("d")) == repr(rows)


def test_names_of_programs_never_meet_names_of_ours(open_site):
    names = ["r0", "s1", "n1", "g1", "copy", "store", "ev_store", "d_r0", "c0", "w", "t1"]
    tables = "".join(f"CREATE TABLE {name} (w BIGINT, c0 BIGINT, version BIGINT);" for name in names)
    views = "CREATE MATERIALIZED VIEW p1 AS SELECT w, cl FROM (SELECT w, c0 AS cl FROM r0) AS x;"
    site = open_site(tables + views)
    for name in names:
        site.insert(name, [(1, 2, 3), (1, 2, 4)])
        assert site.rows(name) == [(1, 2, 3), (1, 2, 4)]
    assert site.rows("p1") == [(1, 2), (1, 2)]
