"""What lost is still there: conflicts, from Python, in queries, and for plain SQLite clients."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.store import Store

PROGRAM = """
    CREATE TABLE orders (id BIGINT, place TEXT, amount DECIMAL(10, 2), paid BOOLEAN, note BLOB, at TIMESTAMP,
        part DOUBLE, PRIMARY KEY (place, id));
    CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT, age BIGINT) WITH (merge = 'column');
    CREATE TABLE seen (id BIGINT);
    CREATE TABLE best (id BIGINT PRIMARY KEY, points BIGINT) WITH (merge = 'max');
    CREATE MATERIALIZED VIEW unpaid AS SELECT id FROM orders WHERE NOT paid;
"""
NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
ROW: dict[str, Any] = {
    "id": 1,
    "place": 'O"slo',
    "amount": None,
    "paid": None,
    "note": None,
    "at": None,
    "part": None,
}


def open_site(name: str, path: str = ":memory:", *, minute: int = 0, program: str = PROGRAM) -> ev.Site:
    at = int((NOON + dt.timedelta(minutes=minute)).timestamp()) * 1_000_000
    clock = Environment(now_us=lambda: at)
    return ev.Site(Store(path, ev.Program.parse(program), name, environment=clock))


def agree(*sites: ev.Site) -> None:
    for site in sites:
        for other in sites:
            if site is not other:
                site.sync(other)


def test_a_row_that_another_beat_is_listed_until_its_key_is_written() -> None:
    one, other = open_site("one"), open_site("", minute=1)
    one.insert("orders", [ROW | {"amount": Decimal("1.50"), "paid": False}])
    other.insert("orders", [ROW | {"amount": Decimal("2.50")}])
    assert one.conflicts("orders") == []
    agree(one, other)
    lost = ROW | {"amount": Decimal("1.50"), "paid": False, "author": "one", "time": NOON}
    assert one.conflicts("orders") == other.conflicts("orders") == [lost]
    assert one.rows("unpaid") == []
    one.insert("orders", [ROW])
    agree(one, other)
    assert one.conflicts("orders") == other.conflicts("orders") == []


def test_a_site_without_a_name_is_called_by_its_incarnation() -> None:
    one, other = open_site("one", minute=2), open_site("", minute=1)
    one.insert("orders", [ROW])
    other.insert("orders", [ROW | {"amount": Decimal(1)}])
    agree(one, other)
    (found,) = one.conflicts("orders")
    assert found["author"] == other.replica.incarnation


def test_rows_that_say_the_same_are_no_conflict() -> None:
    one, other = open_site("one"), open_site("other")
    for site in (one, other):
        site.insert("orders", [ROW])
        site.insert("best", [(1, 1 if site is one else 2)])
    agree(one, other)
    assert one.conflicts("orders") == one.conflicts("best") == []
    with pytest.raises(ev.DataError, match="seen has no PRIMARY KEY"):
        one.conflicts("seen")
    with pytest.raises(ev.DataError, match="unpaid is a view"):
        one.conflicts("unpaid")


def test_of_merged_columns_only_lost_edits_are_listed() -> None:
    sites = [open_site(name, minute=minute) for name, minute in (("one", 0), ("other", -9), ("third", 2))]
    one, other, third = sites
    one.insert("person", [(1, "Ann", 17), (2, "Bo", 30)])
    agree(*sites)
    one.execute("UPDATE person SET age = 18 WHERE id = 1")
    agree(*sites)
    one.execute("UPDATE person SET age = 19 WHERE id = 1")
    other.execute("UPDATE person SET age = 31 WHERE id = 2")  # its clock is behind: it loses
    other.execute("UPDATE person SET name = 'Bob' WHERE id = 2")  # what it sees there it supersedes
    third.execute("UPDATE person SET name = 'Anne' WHERE id = 1")
    one.execute("UPDATE person SET age = 32 WHERE id = 2")
    agree(*sites)
    assert third.rows("person") == [(1, "Anne", 19), (2, "Bob", 32)]
    for site in sites:
        (found,) = site.conflicts("person")
        assert (found["id"], found["name"], found["age"], found["author"]) == (2, "Bob", 31, "other")
    one.execute("UPDATE person SET age = 33 WHERE id = 2")
    agree(*sites)
    assert all(site.conflicts("person") == [] for site in sites)


def test_where_rows_go_back_to_several_rather_one_too_many_is_listed() -> None:
    sites = [open_site(name, minute=minute) for minute, name in enumerate(("one", "other", "third"))]
    one, other, third = sites
    one.insert("person", [(1, "Ann", 17)])
    agree(*sites)
    one.execute("UPDATE person SET age = 18")
    one.sync(other)
    one.execute("UPDATE person SET name = 'Anne'")  # its row goes back to that of Ann, 18
    third.execute("UPDATE person SET age = 19")
    agree(*sites)
    assert other.rows("person") == [(1, "Anne", 19)]
    assert [(row["name"], row["age"], row["author"]) for row in other.conflicts("person")] == [
        ("Anne", 18, "one"),  # its edit of the age is lost
        ("Ann", 19, "third"),  # nothing is, but who knows: it may have written that name
    ]


def test_columns_that_are_called_author_and_time_stand_as_they_are() -> None:
    text = "CREATE TABLE post (id BIGINT PRIMARY KEY, author TEXT, time BIGINT)"
    one, other = open_site("one", program=text), open_site("other", program=text, minute=1)
    one.insert("post", [(1, "Ann", 1)])
    other.insert("post", [(1, "Bo", 2)])
    agree(one, other)
    assert one.conflicts("post") == [
        {"id": 1, "author": "Ann", "time": 1, "everview_author": "one", "everview_time": NOON}
    ]


def full_conflict(path: Path) -> tuple[ev.Site, ev.Site]:
    one, other = open_site("o'ne", str(path)), open_site("other", minute=1)
    values = {"amount": Decimal("-1.5"), "paid": True, "note": b"\x00\xff", "at": NOON, "part": float("inf")}
    one.insert("orders", [ROW | values])
    one.insert("person", [(1, "Ann", 17)])
    other.insert("orders", [ROW])
    other.insert("person", [(1, "Anne", 17)])
    agree(one, other)
    return one, other


def test_queries_read_conflicts(tmp_path: Path) -> None:
    one, _ = full_conflict(tmp_path / "one.db")
    sql = "SELECT relation, key, row, author, time FROM everview.conflicts ORDER BY relation"
    found = one.query(sql)
    assert [(row["relation"], row["author"], row["time"]) for row in found] == [
        ("orders", "o'ne", NOON),
        ("person", "o'ne", NOON),
    ]
    assert json.loads(found[0]["key"]) == {"place": 'O"slo', "id": 1}
    assert json.loads(found[0]["row"]) == {
        "id": 1,
        "place": 'O"slo',
        "amount": "-1.50",
        "paid": True,
        "note": "00ff",
        "at": "2030-01-01 12:00:00.000000",
        "part": "Infinity",
    }
    assert json.loads(found[1]["row"]) == {"id": 1, "name": "Ann", "age": 17}
    assert one.query(sql.replace("everview.conflicts", "everview_conflicts")) == found
    joined = "SELECT c.author, p.name FROM everview.conflicts AS c JOIN person AS p ON c.relation = 'person'"
    assert one.query(joined) == [{"author": "o'ne", "name": "Anne"}]
    assert one.query("SELECT conflicts.author FROM everview.conflicts WHERE relation = 'person'")


def test_plain_clients_read_conflicts(tmp_path: Path) -> None:
    one, _ = full_conflict(tmp_path / "one.db")
    connection = sqlite3.connect(tmp_path / "one.db")
    connection.row_factory = sqlite3.Row
    found = [dict(row) for row in connection.execute("SELECT * FROM everview_conflicts ORDER BY relation")]
    connection.close()
    told = one.query("SELECT * FROM everview.conflicts ORDER BY relation")
    assert [row.pop("time") for row in found] == ["2030-01-01 12:00:00.000000"] * 2
    assert [row.pop("time") for row in told] == [NOON] * 2
    assert found == told


def test_it_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    one, _ = full_conflict(tmp_path / "one.db")
    one.close()
    again = ev.Site(Store(str(tmp_path / "one.db"), None, "", hosts=["orders", "person", "unpaid"]))
    assert len(again.conflicts("orders")) == len(again.conflicts("person")) == 1
    assert len(again.query("SELECT * FROM everview.conflicts")) == 2


def test_what_cannot_read_it(tmp_path: Path) -> None:
    with pytest.raises(ev.ProgramError, match="everview_conflicts"):
        ev.Program.parse(PROGRAM + "CREATE MATERIALIZED VIEW c AS SELECT author FROM everview.conflicts")
    one = open_site("one")
    with pytest.raises(ev.EverviewError, match="everview_conflicts"):
        one.execute("DELETE FROM everview_conflicts")
    with pytest.raises(ev.ProgramError, match="has no schema before it"):
        one.query("SELECT * FROM other.conflicts")


def test_wide_relations() -> None:
    columns = ", ".join(f"c{n} BIGINT" for n in range(300))
    text = f"""
        CREATE TABLE wide (k BIGINT PRIMARY KEY, {columns});
        CREATE TABLE merged (k BIGINT PRIMARY KEY, {columns}) WITH (merge = 'column');
    """
    one, other = open_site("one", program=text), open_site("other", program=text, minute=1)
    for site, value in ((one, 1), (other, 2)):
        site.insert("wide", [(1, *[value] * 300)])
        site.insert("merged", [(1, *[value] * 300)])
    agree(one, other)
    found = one.query("SELECT relation, row FROM everview.conflicts ORDER BY relation")
    assert [row["relation"] for row in found] == ["merged", "wide"]
    assert json.loads(found[1]["row"])["c299"] == 1
    assert one.conflicts("merged")[0]["c299"] == 1


def test_more_relations_than_sqlite_unites() -> None:
    one = open_site("one", program="".join(f"CREATE TABLE t{n} (k BIGINT PRIMARY KEY);" for n in range(501)))
    assert one.query("SELECT * FROM everview.conflicts") == []
