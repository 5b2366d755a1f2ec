"""What a gate tells adds up to what it has, whatever is written, synced and killed."""

import msgspec
import pytest
from tests.hub.gates import CATALOG, PROGRAM, World, run

from everview.errors import StoreError, SyncError
from everview.hub import exporting
from everview.hub.inbox import read_mark
from everview.hub.peering import Peering
from everview.replication.transports.memory import MemoryTransport

SEEDS = (1, 22, 26)
"""These fail when what leaves is not noted."""


@pytest.mark.parametrize("seed", SEEDS)
def test_random_histories(tmp_path, seed):
    run(tmp_path / "hub", seed)


def test_what_others_deleted_meanwhile_leaves_a_hub_that_was_put_back(tmp_path):
    """Deleted, and there again in the backup: it goes when the gate has met a site."""
    world = World(tmp_path / "hub", 0)
    a, b, _ = world.sites
    rows = {"s": [(1, "x"), (2, "x")], "k": [(1, 0.5, "x"), (2, 0.5, "x")]}
    rows |= {"m": [(1, "x"), (2, "x")], "w": [(1, None), (2, None)]}
    for name, both in rows.items():
        a.insert(name, both)
    world.sync(a)
    world.refresh(crash=False)
    world.keep()
    world.sync(b)
    for name, both in rows.items():
        b.delete(name, both[:1])
    for _ in range(2):
        for site in (a, b):
            world.sync(site)
    world.put_back()
    assert world.model.rows("s") == rows["s"]
    world.end()
    for name, both in rows.items():
        assert world.model.rows(name) == both[1:], name
    world.close()


def test_a_hub_that_was_taken_over_writes_into_its_gate_no_more(tmp_path):
    """Neither its own writes nor what sites bring it."""
    world = World(tmp_path, 0)
    site, relation = world.sites[0], PROGRAM.relations["w"]
    old = world.gate
    world.sync(site)
    later = msgspec.structs.replace(world.record, epoch=2)
    world.peering = Peering(world.files, CATALOG, "hub", later)
    with pytest.raises(StoreError, match="another hub has taken"):
        old.put(1, relation, [(True, iter([[[1], [None]]]))])
    site.insert("w", [(2, None)])
    with pytest.raises(SyncError, match="another hub has taken"):
        site.sync(MemoryTransport(old.replica, "hub"))
    assert world.gate.put(1, relation, [(True, iter([[[3], [None]]]))])
    world.sync(site)
    world.refresh(crash=False)
    assert world.model.rows("w") == [(2, None), (3, None)]
    old.close()
    world.close()


def test_copies_and_rows_come_in_chunks(tmp_path, monkeypatch):
    """More rows than are in memory at once, and more copies of one row."""
    monkeypatch.setattr(exporting, "CHUNK", 7)
    world = World(tmp_path, 0)
    a = world.sites[0]
    a.insert("m", [(1, "x")] * 30 + [(number, None) for number in range(20)])
    a.insert("s", [(number, "x") for number in range(20)])
    world.sync(a)
    world.refresh(crash=False)
    a.delete("m", [(1, "x")] * 11 + [(5, None)])
    a.delete("s", [(number, "x") for number in range(0, 20, 2)])
    world.sync(a)
    world.refresh(crash=False)
    assert len(world.model.rows("m")) == 38
    world.end()
    world.close()


def test_a_damaged_write_is_set_aside_and_the_others_go_in(tmp_path):
    world = World(tmp_path, 0)
    for number in range(3):
        world.inbox.put_rows(PROGRAM.relations["s"], [(number, "x" * 50)] * 2, present=True)
    arrivals = [read_mark(world.files, name) for name in world.inbox.waiting(0)]
    (file,) = (tmp_path / arrivals[1].folder).glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[20:60] = bytes(40)
    file.write_bytes(content)
    rejected = []
    export = world.peering.take_in(arrivals, world.record, lambda arrival, reason: rejected.append(arrival))
    assert rejected == [arrivals[1]]
    world.model.refresh(export.arrivals)
    assert world.model.rows("s") == [(0, "x" * 50), (2, "x" * 50)]
    world.close()
