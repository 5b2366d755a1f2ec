"""A replica that differs although it has seen the same is noticed, and read again."""

from __future__ import annotations

import pytest
from tests.replication.stores import Peer

from everview.replication.protocol.replica import Replica


@pytest.mark.parametrize("relation", ["s", "k", "g", "w"])
@pytest.mark.parametrize(
    "harm", ["DELETE FROM {table} WHERE c0 = 2", "UPDATE {table} SET c1 = 'z' WHERE c0 = 3"]
)
def test_rows_that_were_changed_behind_its_back(relation, harm):
    ann, bob = Peer("ann"), Peer("bob")
    more = (0.5,) if relation == "k" else ()
    ann.insert(relation, [(number, "x", *more) for number in range(5)])
    bob.sync(ann)
    stored = bob.store.engine.relations[relation]
    bob.connection.execute(harm.format(table=stored.table.name))
    bob.connection.execute("UPDATE everview_partitions SET summed = 0")  # as `everview doctor` does
    ann.insert(relation, [(9, "x", *more)])
    bob.sync(ann)
    assert bob.alarms() == [relation]
    with bob.replica.repairing([relation]):
        bob.sync(ann)
    assert bob.rows(relation) == ann.rows(relation)
    assert bob.alarms() == []
    assert bob.digests() == ann.digests()


def test_who_lacks_something_repairs_nobody():
    """Else what was removed here would come back, under a vector that says it is gone."""
    ann, bob, eve = Peer("ann"), Peer("bob"), Peer("eve")
    ann.insert("w", [(1, "x"), (2, "x")])
    bob.sync(ann)
    bob.delete("w", [(1, "x")])
    with bob.replica.repairing(["w"]):
        bob.sync(ann)
    eve.sync(bob)
    ann.sync(bob)
    assert ann.rows("w") == bob.rows("w") == eve.rows("w") == [(2, "x")]
    assert ann.digests()["w"] == bob.digests()["w"] == eve.digests()["w"]


def test_readers_of_what_was_repaired_lose_nothing():
    ann, bob, eve = Peer("ann"), Peer("bob"), Peer("eve")
    ann.insert("w", [(1, "x"), (2, "x")])
    for reader in (bob, eve):
        reader.sync(ann)
    eve.sync(bob)
    with bob.replica.repairing(["w"]):
        bob.sync(ann)
    eve.sync(bob)
    assert eve.rows("w") == [(1, "x"), (2, "x")]


def test_many_rows_are_read_again_page_by_page(monkeypatch):
    """Also where an exchange that read something else was broken off before."""
    monkeypatch.setitem(Replica.__init__.__kwdefaults__, "page_cells", 50)
    ann, bob = Peer("ann"), Peer("bob")
    ann.insert("w", [(number, "x") for number in range(100)])
    bob.sync(ann)
    table = bob.store.engine.relations["w"].table.name
    bob.connection.execute(f"UPDATE {table} SET c1 = 'z' WHERE c0 % 7 = 0")
    ann.insert("w", [(number, "y") for number in range(100)])
    broken = bob.replica.exchange("ann")
    message = broken.open()
    for _ in range(3):
        message = broken.receive(ann.replica.answer(message))
    with bob.replica.repairing(["w"]):
        bob.sync(ann)
    assert bob.rows("w") == ann.rows("w")
    assert bob.connection.execute("SELECT count(*) FROM everview_pages").fetchone() == (0,)
