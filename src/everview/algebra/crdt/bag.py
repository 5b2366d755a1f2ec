"""Bag: a Z-set wrapped in a lattice (Rings §3)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.replica import Replica
from everview.algebra.zset import ZSet

Rows = ZSet[Hashable]


@dataclass(frozen=True, slots=True)
class Weights(Aggregate[Rows, Rows]):
    """Z-sets under +."""

    def zero(self) -> Rows:
        """Return the empty Z-set."""
        return ZSet()

    def combine(self, a: Rows, b: Rows, /) -> Rows:
        """Return a + b."""
        return a + b

    def lift(self, row: Hashable, weight: int = 1) -> Rows:
        """Return one row with its weight."""
        return ZSet({row: weight})

    def value(self, contribution: Rows, /) -> Rows:
        """Return the weights: a row is there when its weight is above 0."""
        return contribution


class Bag(Replica[Rows, Rows]):
    """A multiset that sites insert into and delete from; a row is there when its weight is above 0.

    The group inside applies changes, the lattice outside makes the network harmless. Deletes are guarded
    by what this replica sees; two sites that both delete the last copy leave a weight of −1, and it takes
    two insertions to show the row again. Causal lengths do not have this anomaly.
    """

    aggregate: Weights

    def __init__(self, source: str) -> None:
        super().__init__(Weights(), source)

    def insert(self, row: Hashable, copies: int = 1) -> None:
        """Insert copies of a row."""
        self.contribute(self.aggregate.lift(row, checks.positive(copies, "the number of copies")))

    def delete(self, row: Hashable, copies: int = 1) -> int:
        """Delete copies of a row, at most as many as are seen here; return how many."""
        seen = min(checks.positive(copies, "the number of copies"), max(self.value[row], 0))
        if seen:
            self.contribute(self.aggregate.lift(row, -seen))
        return seen
