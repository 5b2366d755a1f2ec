"""A row that its owner has not written is taken, undone by a write, and told of."""

from __future__ import annotations

import pytest
from tests.replication.stores import Peer

import everview as ev
from everview.engines.sqlite.writing import Writing

KINDS = ("set", "bag", "add_wins")


def owned(kind):
    return ev.Program.parse(f"""
        CREATE TABLE o (who TEXT, a BIGINT) WITH (owner = 'who', semantics = '{kind}');
        CREATE MATERIALIZED VIEW n AS SELECT who, count(*) AS n FROM o GROUP BY who;
    """)


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_row_is_seen_nowhere_and_its_writer_is_told(kind, monkeypatch):
    ann, bob, eve = (Peer(name, program=owned(kind)) for name in ("ann", "bob", "eve"))
    ann.insert("o", [("ann", 1)])
    bob.insert("o", [("bob", 2)])
    seen: list[object] = []
    watch = ann.writing.watch("o", seen.extend)
    with monkeypatch.context() as forging:
        forging.setattr(Writing, "_check_owner", lambda *_: None)
        eve.insert("o", [("ann", 66), ("eve", 3)])
    ann.sync(eve)
    watch.cancel()
    assert seen == [(("eve", 3), 1)]  # the forged row was never there
    for one in (bob, eve, bob, ann):
        one.sync(ann) if one is not ann else one.sync(bob)
    expected = [("ann", 1), ("bob", 2), ("eve", 3)]
    assert ann.rows("o") == bob.rows("o") == eve.rows("o") == expected
    assert ann.rows("n") == eve.rows("n") == [("ann", 1), ("bob", 1), ("eve", 1)]
    (told,) = eve.replica.status()["refused"]
    assert (told["refused_by"], told["row"]) == ("ann", '{"who": "ann", "a": 66}')
    assert ann.digests() == eve.digests()


KEYED = ev.Program.parse(
    "CREATE TABLE o (a BIGINT, who TEXT, b TEXT, PRIMARY KEY (a, who)) WITH (owner = 'who');"
)


def test_a_row_that_somebody_else_removes_is_written_again_by_its_owner(monkeypatch):
    for program, row, forged in (
        *((owned(kind), ("ann", 1), ("ann", 1)) for kind in KINDS),
        (KEYED, (1, "ann", "mine"), (1, "ann", "forged")),
    ):
        ann, bob, eve = (Peer(name, program=program) for name in ("ann", "bob", "eve"))
        ann.insert("o", [row])
        for other in (bob, eve):
            other.sync(ann)
        with monkeypatch.context() as forging:
            forging.setattr(Writing, "_check_owner", lambda *_: None)
            forging.setattr(Writing, "check_replaced", lambda *_: None)
            (eve.delete if forged == row else eve.insert)("o", [forged])
        bob.sync(eve)
        ann.sync(bob)
        for one in (bob, eve):
            one.sync(ann)
        assert ann.rows("o") == bob.rows("o") == [row]
        assert eve.rows("o") == [row]
        assert ann.digests() == bob.digests()


def test_a_forged_row_for_a_key_that_is_held(monkeypatch):
    ann, bob = Peer("ann", program=KEYED), Peer("bob", program=KEYED)
    ann.insert("o", [(1, "ann", "mine")])
    with monkeypatch.context() as forging:
        forging.setattr(Writing, "_check_owner", lambda *_: None)
        forging.setattr(Writing, "check_replaced", lambda *_: None)
        bob.insert("o", [(1, "ann", "forged")])
    ann.sync(bob)
    bob.sync(ann)
    assert ann.rows("o") == bob.rows("o") == [(1, "ann", "mine")]
