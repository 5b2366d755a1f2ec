"""Lattice values in stores: nothing in the language makes such a relation yet."""

import random

import msgspec
import pytest
from tests.replication.stores import Peer

import everview as ev
from everview.algebra.lattices import GrowSet, Max, MergeMap
from everview.engines.sqlite import hosting
from everview.engines.sqlite.rows.making import lattice_rows

PROGRAM = ev.Program.parse("""
    CREATE TABLE state (stage BIGINT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (stage, key))
        WITH (merge = 'column');
""")
SETS, COUNTS = GrowSet(), MergeMap(Max())


def coded(names, counts):
    return msgspec.msgpack.encode((sorted(set(names)), dict(sorted(counts.items()))))


def grown(left, right):
    """Join (set, counts) in one canonical form."""
    (a, m), (b, n) = msgspec.msgpack.decode(left), msgspec.msgpack.decode(right)
    return coded(SETS.join(frozenset(a), frozenset(b)), dict(COUNTS.join(m, n)))


@pytest.mark.parametrize("seed", range(10))
def test_lattice_values_are_joined(seed, monkeypatch):
    """Of what was written without deletions everything is in the join, wherever it was heard of."""
    monkeypatch.setattr(hosting, "stored_rows", lambda *given: lattice_rows(*given, grown))
    rng = random.Random(seed)
    peers = [Peer(f"p{number}", program=PROGRAM) for number in range(3)]
    heard = {peer: {} for peer in peers}
    for _ in range(60):
        peer, other = rng.sample(peers, 2)
        if rng.random() < 0.6:
            key = (rng.randrange(2), rng.choice("ab"))
            values = [
                coded(rng.choices("xyzuvw", k=2), {rng.choice("pq"): rng.randrange(9)})
                for _ in range(rng.choice([1, 1, 2]))
            ]
            peer.insert("state", [(*key, value) for value in values])
            for value in values:
                heard[peer][key] = grown(heard[peer].get(key, value), value)
        else:
            peer.sync(other)
            for key, value in [*heard[other].items()]:
                heard[peer][key] = grown(heard[peer].get(key, value), value)
            heard[other] = dict(heard[peer])
            assert peer.digests() == other.digests()
        assert peer.rows("state") == sorted((*key, value) for key, value in heard[peer].items())
