"""The order in which a select visits tables, and the equalities that follow from those that are written."""

import sqlite3

import pytest

from everview.engines.sqlite.circuits.names import Names
from everview.engines.sqlite.circuits.select import Condition, equality, from_table


class Tables:
    """Tables of one column, and a select of all their pairs."""

    def __init__(self, **kinds):
        names = Names()
        self.tables = {}
        for table, kind in kinds.items():
            is_delta = kind == "delta"
            self.tables[table] = from_table(names, table, ["c0"], stored=not is_delta, delta=is_delta)
        first, *others = self.tables.values()
        self.pairs = first
        for other in others:
            self.pairs = self.pairs.cross(other)

    def equal(self, one, other, *, null_safe=False):
        sides = [self.tables[table].columns[0] for table in (one, other)]
        self.pairs = self.pairs.filter(equality(*sides, null_safe=null_safe))

    def order(self, *many):
        found, _ = self.pairs.knowing(frozenset(many))._order(frozenset())
        return [source.table for source, _ in found]

    def derived(self, *many):
        _, found = self.pairs.knowing(frozenset(many))._order(frozenset())
        return [condition.sql for condition in found]


@pytest.fixture
def star():
    """Two deltas that only a stored table connects."""
    tables = Tables(a="delta", b="delta", s="stored")
    tables.equal("a", "s")
    tables.pairs = tables.pairs.filter(equality(tables.tables["b"].columns[0], "t3.c1", null_safe=False))
    return tables


def test_few_rows_are_paired(star):
    assert star.order() == ["a", "b", "s"]


def test_many_rows_wait_for_an_equality(star):
    assert star.order("a", "b") == ["a", "s", "b"]


def test_few_rows_come_before_many(star):
    assert star.order("a") == ["b", "s", "a"]
    assert star.order("b") == ["a", "s", "b"]


def test_a_constant_leads_less_than_a_table():
    tables = Tables(a="delta", f="stored", s="stored")
    tables.pairs = tables.pairs.filter(equality("t2.c1", "'F'", null_safe=False))
    tables.equal("a", "s")
    tables.equal("s", "f")
    assert tables.order("a")[0] == "a"
    only = Tables(a="delta", f="stored", s="stored")
    only.pairs = only.pairs.filter(
        equality("t2.c1", "'F'", null_safe=False),
        equality("t3.c0", "t1.c0", null_safe=False),
        equality("t3.c1", "t2.c0", null_safe=False),
    )
    assert only.order("a") == ["a", "s", "f"]


def test_what_is_equal_to_one_leads_to_all():
    tables = Tables(a="delta", b="stored", c="stored")
    tables.equal("a", "b")
    tables.equal("c", "b")
    assert tables.derived() == []  # b leads to c as it is written
    two = Tables(a="delta", c="delta", b="stored")
    two.equal("a", "b")
    two.equal("c", "b")
    assert two.order("a", "c") == ["a", "c", "b"]
    assert two.derived("a", "c") == ["t2.c0 = t1.c0"]


@pytest.mark.parametrize("null_safe", [False, True])
def test_what_follows_keeps_every_row(null_safe):
    tables = Tables(a="delta", c="delta", b="stored")
    tables.equal("a", "b", null_safe=True)
    tables.equal("c", "b", null_safe=null_safe)
    connection = sqlite3.connect(":memory:")
    for table in "abc":
        connection.execute(f"CREATE TABLE {table} (c0)")
        connection.executemany(f"INSERT INTO {table} VALUES (?)", [(1,), (None,), (2,)])
    few, many = tables.pairs, tables.pairs.knowing(frozenset("ac"))
    assert tables.derived("a", "c")
    wanted = {(1, 1, 1), (2, 2, 2), *([(None, None, None)] if null_safe else [])}
    for select in (few, many):
        assert {tuple(row[:3]) for row in connection.execute(select.sql())} == wanted


def test_a_range_leads_where_no_equality_does():
    tables = Tables(a="delta", s="stored", t="stored")
    over = Condition("(t3.c1 < t1.c0)", bounds=("t3.c1", "t1.c0"))
    tables.pairs = tables.pairs.filter(over)
    wanted = []
    tables.pairs.sql(on_index=lambda source, by: wanted.append((source.table, by)))
    assert tables.order() == ["a", "t", "s"]
    assert wanted == [("t", ("c1",))]
    tables.equal("a", "s")
    tables.equal("s", "t")
    wanted.clear()
    tables.pairs.sql(on_index=lambda source, by: wanted.append((source.table, by)))
    assert wanted == [("t", ("c0", "c1")), ("s", ("c0",))]
