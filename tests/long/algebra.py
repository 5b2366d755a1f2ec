"""Random algebra: provenance against truth tables, dot sets against sets, CRDT histories against a sum."""

import random

from everview import crdt
from everview.algebra.causal_length import CausalLengths
from everview.algebra.lattices import DotSet
from everview.algebra.provenance import Provenance


def case(seed):
    rng = random.Random(seed)
    _provenance(rng)
    _dots(rng)
    _histories(rng)


def _provenance(rng):
    """Random expressions over six ids, kept twice: as elements and as truth tables of 64 bits."""
    ids = "abcdef"
    worlds = [frozenset(c for i, c in enumerate(ids) if world >> i & 1) for world in range(64)]
    known = [(Provenance.of(c), sum(1 << w for w, there in enumerate(worlds) if c in there)) for c in ids]
    for _ in range(30):
        (p, x), (q, y) = rng.choice(known), rng.choice(known)
        known.append((p + q, x | y) if rng.random() < 0.5 else (p * q, x & y))
    for p, table in known:
        world = rng.randrange(64)
        lengths = CausalLengths(
            {c: rng.choice([1, 3]) if c in worlds[world] else rng.choice([0, 2]) for c in ids}
        )
        assert p.present(lengths) is bool(table >> world & 1), (p, lengths)
        assert Provenance.parse(str(p)) == p
        assert not any(m < n for m in p.monomials for n in p.monomials), p


def _dots(rng):
    plain, dots = set(), DotSet()
    for _ in range(rng.randrange(40)):
        more = {(rng.choice("ab"), rng.randint(1, 30)) for _ in range(rng.randint(1, 6))}
        plain |= more
        dots |= DotSet(more)
    assert set(dots) == plain
    assert DotSet.from_runs(dots.runs) == dots


def _histories(rng):
    """Full and hollow replicas over a network that loses, doubles and reorders; then everything arrives."""
    replicas = [crdt.Sum(f"p{i}") for i in range(3)]
    replicas += [replicas[0].hollow(f"w{i}") for i in range(3)]
    network, added = [], 0
    for _ in range(rng.randrange(80)):
        replica = rng.choice(replicas)
        match rng.randrange(5):
            case 0 | 1:
                amount = rng.randint(-9, 9)
                replica.add(amount)
                added += amount
            case 2:
                if delta := replica.flush():
                    network.append(delta)
            case 3:
                if network:
                    replica.merge_delta(rng.choice(network))
            case 4 if replica.is_hollow:
                replica.promote(rng.choice(replicas[:3]))
            case _:
                replica.join(rng.choice(replicas))
    states = [replica.state() for replica in replicas]
    for replica in replicas:
        for state in rng.sample(states, len(states)):
            replica.join(state)
        assert replica.value == added
    assert len({repr(sorted(replica.state().items())) for replica in replicas}) == 1
