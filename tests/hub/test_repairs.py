"""A hub's relation that differs although both have seen the same is read again; lost stores are given up."""

import pytest

from everview.errors import DataError
from everview.hub.gate import Gate
from everview.language.program import Program
from everview.replication.transports.memory import MemoryTransport
from everview.replication.transports.repairs import repair_with
from everview.site import Site

PROGRAM = Program.parse("""
CREATE TABLE visit (id BIGINT PRIMARY KEY, place TEXT);
CREATE MATERIALIZED VIEW seen AS SELECT place, count(*) AS n FROM visit GROUP BY place;
""")


@pytest.fixture
def gate(tmp_path):
    opened = Gate(str(tmp_path / "gate.db"), PROGRAM, "hub", 1)
    yield opened
    opened.close()


def shown(gate):
    with gate.reading() as (connection, _, _):
        name = gate.relations["visit"].table.name
        return connection.execute(f"SELECT c0, c1 FROM {name} ORDER BY 1").fetchall()


def test_a_relation_of_a_gate_is_read_again(gate):
    site = Site.open(":memory:", PROGRAM, name="site")
    site.insert("visit", [(1, "a"), (2, "b")])
    MemoryTransport(gate.replica, "hub").sync(site.replica)
    with gate._store.writing() as connection:
        connection.execute(f"UPDATE {gate.relations['visit'].table.name} SET c1 = 'z' WHERE c0 = 1")
        connection.execute("UPDATE everview_partitions SET summed = 0")
    site.insert("visit", [(3, "c")])
    MemoryTransport(gate.replica, "hub").sync(site.replica)
    assert shown(gate) == [(1, "z"), (2, "b"), (3, "c")]
    assert [one["relation"] for one in gate.replica.status()["alarms"]] == ["visit"]
    repair_with(gate.replica, "visit", site)
    assert shown(gate) == [(1, "a"), (2, "b"), (3, "c")]
    assert gate.replica.status()["alarms"] == []
    with pytest.raises(DataError, match="computed here"):
        repair_with(gate.replica, "seen", site)


def test_what_was_repaired_is_new_to_the_next_refresh(gate):
    site = Site.open(":memory:", PROGRAM, name="site")
    site.insert("visit", [(1, "a"), (2, "b")])
    MemoryTransport(gate.replica, "hub").sync(site.replica)
    with gate.reading() as (_, head, noted):
        pass
    gate.forget(gate.tell(head), noted)
    assert gate.grown_since(head, 10) == (0, 0)
    repair_with(gate.replica, "visit", site)
    commits, rows = gate.grown_since(head, 10)
    assert commits > 0
    assert rows > 0


def test_a_store_that_a_gate_knows_is_given_up(gate):
    site = Site.open(":memory:", PROGRAM, name="site")
    site.insert("visit", [(1, "a")])
    MemoryTransport(gate.replica, "hub").sync(site.replica)
    assert gate.replica.give_up("site") == site.replica.incarnation
