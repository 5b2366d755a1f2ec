"""A row that its owner has not written is taken, undone by a write, and told of."""

from __future__ import annotations

import everview as ev
from everview.engines.sqlite.writing import Writing
from tests.replication.stores import Peer

OWNED = ev.Program.parse("""
    CREATE TABLE o (who TEXT, a BIGINT) WITH (owner = 'who');
    CREATE MATERIALIZED VIEW n AS SELECT who, count(*) AS n FROM o GROUP BY who;
""")


def test_a_forged_row_is_seen_nowhere_and_its_writer_is_told(monkeypatch):
    ann, bob, eve = (Peer(name, program=OWNED) for name in ("ann", "bob", "eve"))
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
