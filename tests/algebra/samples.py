"""Small samples of every structure, rich enough that a broken law shows."""

from decimal import Decimal

from everview.algebra.causal_length import CausalLength, CausalLengthMap, CausalLengths
from everview.algebra.clock import Stamp
from everview.algebra.lattices import (
    CONFLICT,
    EMPTY,
    Dots,
    DotSet,
    GrowSet,
    LastWriter,
    Lexicographic,
    Max,
    MergeMap,
    Min,
    Or,
    Pair,
    Vectors,
    VersionVector,
    WriteOnce,
)
from everview.algebra.provenance import Provenance, PSemiring

SETS = [frozenset(), frozenset("a"), frozenset("b"), frozenset("ab"), frozenset("bc")]
STAMPS = [None, Stamp(1, 0, "x"), Stamp(1, 0, "y"), Stamp(1, 1, "x"), Stamp(2, 0, "x")]

LATTICES = {
    "max": (Max(), [None, -1, 0, 7]),
    "max of text": (Max(), [None, "", "a", "b"]),
    "min": (Min(), [None, -1, 0, 7]),
    "min of decimals": (Min(), [None, Decimal("1.5"), Decimal("1.50"), Decimal(-2)]),
    "or": (Or(), [False, True]),
    "grow-only set": (GrowSet(), SETS),
    "pair": (Pair(Max(), GrowSet()), [(m, s) for m in (None, 1, 2) for s in SETS[:3]]),
    "lexicographic over a chain": (
        Lexicographic(Max(), GrowSet()),
        [(m, s) for m in (None, 1, 2) for s in SETS[:4]],
    ),
    "lexicographic over a partial order": (
        Lexicographic(GrowSet(), Max()),
        [(s, m) for s in SETS for m in (None, 1, 2)],
    ),
    "merge map": (MergeMap(Max()), [{}, {"k": 1}, {"k": 2}, {"l": 1}, {"k": 1, "l": 3}]),
    "nested merge map": (
        MergeMap(MergeMap(GrowSet())),
        [{}, {"k": {"x": SETS[1]}}, {"k": {"x": SETS[2], "y": SETS[1]}}, {"l": {"x": SETS[1]}}],
    ),
    "write-once": (WriteOnce(), [EMPTY, CONFLICT, 1, 1.0, True, "a", None]),
    "last writer": (
        LastWriter(),
        [(None, EMPTY), *((s, v) for s in STAMPS[1:] for v in ("p", "q", CONFLICT))],
    ),
    "version vector": (
        Vectors(),
        [VersionVector(v) for v in ({}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 3}, {"a": 0})],
    ),
    "dot set": (
        Dots(),
        [DotSet([("a", n) for n in ns]) for ns in ((), (1,), (2,), (1, 2), (1, 3), (2, 4), (1, 2, 3, 4))]
        + [DotSet([("b", 1)]), DotSet([("a", 2), ("b", 1)])],
    ),
    "causal length": (CausalLength(), [0, 1, 2, 3]),
    "causal-length map": (
        CausalLengthMap(),
        [CausalLengths(v) for v in ({}, {"t": 1}, {"t": 2}, {"u": 1}, {"t": 3, "u": 2})],
    ),
    "p-semiring as a lattice": (
        PSemiring(),
        [Provenance.parse(p) for p in ("0", "1", "t", "u", "t·u", "t + u", "t·v + u")],
    ),
}
