"""Three stores that write and meet at random agree, and talk no more than they must."""

from __future__ import annotations

import itertools

from tests.replication.stores import Peer


def test_a_row_travels_to_a_reader_once_whoever_it_meets():
    ann, bob, eve, zoe = (Peer(name) for name in ("ann", "bob", "eve", "zoe"))
    ann.insert("s", [(number, "x") for number in range(1000)])
    for other in (bob, eve):
        other.sync(ann)
    assert [zoe.sync(peer).received_rows for peer in (ann, bob, eve)] == [1000, 0, 0]


def test_an_update_survives_a_deletion_that_has_not_seen_it():
    ann, bob = Peer("ann"), Peer("bob")
    ann.insert("k", [(1, "old", 0.0)])
    bob.sync(ann)
    ann.delete("k", [(1, None, None)])
    bob.insert("k", [(1, "new", 1.0)])
    bob.sync(ann)
    assert ann.rows("k") == bob.rows("k") == [(1, "new", 1.0)]


def test_a_reader_that_is_far_behind_is_told_what_lives(monkeypatch):
    monkeypatch.setattr("everview.engines.sqlite.rows.taking.REMEMBERED", 0)
    ann, bob, eve = Peer("ann"), Peer("bob"), Peer("eve")
    ann.insert("w", [(number, "x") for number in range(200)])
    for reader in (bob, eve):
        reader.sync(ann)
    bob.delete("w", [(number, "x") for number in range(0, 200, 2)])
    ann.sync(bob)
    ann.delete("w", [(number, "x") for number in range(1, 100, 2)])
    ann.insert("w", [(1000, "y")])
    bob.sync(ann)  # and forgets what went
    eve.sync(bob)
    assert eve.rows("w") == ann.rows("w") == bob.rows("w")
    assert eve.digests()["w"] == ann.digests()["w"]


def test_two_syncs_at_once_with_one_peer_both_end_with_all():
    """Each page that one of them stages makes the other's question void; that one asks again."""
    ann, bob = Peer("ann"), Peer("bob")
    ann.insert("s", [(number, "x") for number in range(1000)])
    ann.replica.page_cells = 300
    exchanges = [bob.replica.exchange("ann") for _ in range(2)]
    messages = [exchange.open() for exchange in exchanges]
    for turn in itertools.count():
        at = turn % 2
        if messages[at] is None:
            break
        messages[at] = exchanges[at].receive(ann.replica.answer(messages[at]))
    assert bob.rows("s") == ann.rows("s")
