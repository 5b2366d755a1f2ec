"""WITH (merge = …): what concurrent writes to one key come to."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.engines.sqlite.store import Store
from everview.language.evolution import Evolution

COLUMN = """
    CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT, age BIGINT, paid DECIMAL(10, 2), born DATE)
    WITH (merge = 'column');
    CREATE MATERIALIZED VIEW grown AS SELECT name, age FROM person WHERE age > 17;
    CREATE MATERIALIZED VIEW ages AS SELECT age, count(*) AS n FROM person GROUP BY age;
"""


def open_site(name: str, program: str = COLUMN, **more: Any) -> ev.Site:
    return ev.Site(Store(":memory:", ev.Program.parse(program), name, **more))


@pytest.fixture
def pair() -> tuple[ev.Site, ev.Site]:
    one, other = open_site("one"), open_site("other")
    one.insert("person", [(1, "Ann", 17, Decimal("1.50"), dt.date(2000, 1, 1))])
    one.sync(other)
    return one, other


def agree(*sites: ev.Site) -> None:
    for site in sites:
        for other in sites:
            if site is not other:
                site.sync(other)
    for name in sites[0].program.names():
        assert all(site.rows(name) == sites[0].rows(name) for site in sites)
        assert not sites[0].status()["replication"]["alarms"]


def test_two_people_who_edit_two_columns_both_keep_their_edit(pair: tuple[ev.Site, ev.Site]) -> None:
    one, other = pair
    one.execute("UPDATE person SET age = 18 WHERE id = 1")
    other.execute("UPDATE person SET name = 'Anne' WHERE id = 1")
    agree(one, other)
    assert one.query("SELECT name, age FROM person") == [{"name": "Anne", "age": 18}]
    assert one.rows("grown") == [("Anne", 18)]
    assert one.rows("ages") == [(18, 1)]


def test_of_two_changes_of_one_column_the_later_is_shown(pair: tuple[ev.Site, ev.Site]) -> None:
    one, other = pair
    other.execute("UPDATE person SET age = 20, paid = 2 WHERE id = 1")
    one.execute("UPDATE person SET age = 18 WHERE id = 1")
    agree(one, other)
    assert one.query("SELECT age, paid FROM person") == [{"age": 18, "paid": Decimal("2.00")}]


def test_a_written_row_that_repeats_a_value_does_not_change_it(pair: tuple[ev.Site, ev.Site]) -> None:
    one, other = pair
    other.execute("UPDATE person SET age = NULL WHERE id = 1")
    one.insert(
        "person", [(1, "Anne", 17, Decimal("1.5"), dt.date(2000, 1, 1))]
    )  # later, but of the name alone
    agree(one, other)
    assert one.query("SELECT name, age FROM person") == [{"name": "Anne", "age": None}]


def test_a_write_replaces_the_join_of_what_it_sees(pair: tuple[ev.Site, ev.Site]) -> None:
    one, other = pair
    one.execute("UPDATE person SET age = 18 WHERE id = 1")
    other.execute("UPDATE person SET name = 'Anne' WHERE id = 1")
    agree(one, other)
    assert _held(one) == _held(other) == 2
    other.execute("UPDATE person SET age = 19 WHERE id = 1")
    agree(one, other)
    assert _held(one) == _held(other) == 0
    assert one.query("SELECT name, age FROM person") == [{"name": "Anne", "age": 19}]


def test_a_deletion_removes_the_rows_that_it_sees(pair: tuple[ev.Site, ev.Site]) -> None:
    one, other = pair
    third = open_site("third")
    third.sync(one)
    one.execute("UPDATE person SET age = 18 WHERE id = 1")
    other.execute("UPDATE person SET name = 'Anne' WHERE id = 1")
    agree(one, other)
    third.execute("UPDATE person SET age = 21 WHERE id = 1")
    assert one.delete("person", [{"id": 1}]) == 1
    assert one.rows("person") == []
    agree(one, other, third)
    assert one.query("SELECT name, age FROM person") == [{"name": "Ann", "age": 21}]
    assert _held(one) == _held(other) == _held(third) == 0


def test_a_store_that_is_opened_again_has_the_same(tmp_path: Path) -> None:
    program = ev.Program.parse(COLUMN)
    one = ev.Site(Store(str(tmp_path / "one.db"), program, "one"))
    other = open_site("other")
    one.insert("person", [(1, "Ann", 17, None, None)])
    one.sync(other)
    one.execute("UPDATE person SET age = 18")
    other.execute("UPDATE person SET name = 'Anne'")
    one.sync(other)
    rows = one.rows("person")
    one.close()
    again = ev.Site(Store(str(tmp_path / "one.db"), None, ""))
    assert again.rows("person") == rows == other.rows("person")
    again.execute("UPDATE person SET age = 19")
    agree(again, other)


@pytest.mark.parametrize("stamp", [0, 2**62, 2**63 - 1])
@pytest.mark.parametrize("age", [0, 1, 2**63 - 1])
def test_stamps_that_no_clock_gave_do_no_harm(pair: tuple[ev.Site, ev.Site], stamp: int, age: int) -> None:
    one, other = pair
    connection = one.replica.store.writer.connection
    connection.execute("UPDATE everview_r0 SET stamp = ?, since = ?, a0 = ?, a2 = ?", (stamp, age, age, age))
    one.execute("UPDATE person SET name = 'Anne'")
    one.execute("UPDATE person SET age = 3")
    own = connection.execute("SELECT stamp, since, a0, a1, a2, a3 FROM everview_r0").fetchone()
    assert all(type(cell) is int and cell >= 0 for cell in own)
    other.execute("UPDATE person SET paid = NULL")
    one.sync(other)
    assert one.rows("person") == other.rows("person")
    assert one.rows("person")[0][:3] == (1, "Anne", 3)


def test_max_and_min() -> None:
    text = """
        CREATE TABLE best (who TEXT PRIMARY KEY, points BIGINT, note TEXT) WITH (merge = 'max');
        CREATE TABLE least (who TEXT PRIMARY KEY, seconds DOUBLE) WITH (merge = 'min');
    """
    one, other = open_site("one", text), open_site("other", text)
    assert one.insert("best", [("Ann", 3, "a"), ("Ann", 1, "b"), ("Bo", None, None)]) == 2
    assert one.rows("best") == [("Ann", 3, "b"), ("Bo", None, None)]
    assert one.insert("best", [("Ann", 2, "a")]) == 0  # nothing is raised
    other.insert("best", [("Ann", 7, None), ("Bo", 1, "x")])
    one.insert("least", [("Ann", float("nan"))])
    other.insert("least", [("Ann", 2.5)])
    agree(one, other)
    assert one.rows("best") == [("Ann", 7, "b"), ("Bo", 1, "x")]
    assert one.rows("least") == [("Ann", 2.5)]
    one.execute("UPDATE best SET points = 1")
    assert one.rows("best") == [("Ann", 7, "b"), ("Bo", 1, "x")]


def test_a_views_host_has_the_relation_whole(pair: tuple[ev.Site, ev.Site]) -> None:
    one, other = pair
    host = open_site("host", hosts={"grown"})
    host.sync(one)
    one.execute("UPDATE person SET age = 18 WHERE id = 1")
    other.execute("UPDATE person SET name = 'Anne' WHERE id = 1")
    for site in (one, other):
        host.sync(site)
    assert host.rows("grown") == [("Anne", 18)]
    assert "person" in host.explain("grown")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("merge = 'colunm'", "line 1, column 53: there is no merge 'colunm' (did you mean column?)"),
        ("merge = 'last'", "there are 'column', 'max' and 'min'"),
        ("merges = 'column'", "WITH (merges = …) is not known here (did you mean merge?)"),
        ("merge = 'max', semantics = 'bag'", "semantics = 'bag': a PRIMARY KEY makes a relation keyed"),
    ],
)
def test_options_that_are_wrong(options: str, said: str) -> None:
    with pytest.raises(ev.ProgramError) as error:
        ev.Program.parse(f"CREATE TABLE r (a BIGINT PRIMARY KEY, b TEXT) WITH ({options})")
    assert said in str(error.value)


def test_merging_needs_a_key() -> None:
    with pytest.raises(ev.ProgramError) as error:
        ev.Program.parse("CREATE TABLE r (a BIGINT, b TEXT)\nWITH (merge = 'max')")
    assert str(error.value) == (
        "line 2, column 7: merge = 'max': rows are merged where they have one key "
        "(declare a PRIMARY KEY, or leave merge out)"
    )


def test_a_change_of_merging_is_no_evolution() -> None:
    plain = ev.Program.parse(COLUMN.replace("WITH (merge = 'column')", ""))
    assert "person" in Evolution(plain, ev.Program.parse(COLUMN)).refused[0]


def test_a_column_that_comes_later_is_older_than_any_change(tmp_path: Path) -> None:
    """A site with an earlier program edits rows of which another has a column more."""
    wider = COLUMN.replace("born DATE)", "born DATE, place TEXT)")
    path = tmp_path / "one.db"
    one = ev.Site(Store(str(path), ev.Program.parse(COLUMN), "one"))
    other = open_site("other")
    one.insert("person", [(1, "Ann", 17, None, None), (2, "Bo", 30, None, None)])
    one.sync(other)
    one.execute("UPDATE person SET age = 31 WHERE id = 2")
    other.execute("UPDATE person SET name = 'Bob' WHERE id = 2")
    one.sync(other)
    one.close()
    ev.Site.migrate(path, ev.Program.parse(wider))
    one = ev.Site(Store(str(path), None, ""))
    assert [(row[:3], row[5]) for row in one.rows("person")] == [
        ((1, "Ann", 17), None),
        ((2, "Bob", 31), None),
    ]
    other.execute("UPDATE person SET paid = 1")
    one.sync(other)
    assert not one.status()["replication"]["alarms"]  # what both have adds up alike
    one.execute("UPDATE person SET place = 'Oslo'")
    other.execute("UPDATE person SET age = age + 1")
    one.sync(other)
    assert [(row[:3], row[5]) for row in one.rows("person")] == [
        ((1, "Ann", 18), "Oslo"),
        ((2, "Bob", 32), "Oslo"),
    ]
    third = open_site("third", wider)
    third.sync(one)
    assert third.rows("person") == one.rows("person")
    assert not third.status()["replication"]["alarms"]


def _held(site: ev.Site) -> int:
    connection = site.replica.store.writer.connection
    return int(connection.execute("SELECT count(*) FROM everview_r0_held").fetchone()[0])
