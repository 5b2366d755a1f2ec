"""TopN: the keys with the greatest totals."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.exact import Exact, Number
from everview.algebra.crdt.map_of import ByKey, MapOf
from everview.algebra.crdt.order import canonical_order
from everview.algebra.crdt.replica import Replica
from everview.algebra.crdt.summation import Amounts, Total

Ranking = tuple[tuple[Hashable, Number], ...]


@dataclass(frozen=True, slots=True)
class Top(Aggregate[ByKey[Amounts], Ranking]):
    """A map of totals, read as its n greatest.

    The whole map is kept: a top-n kept alone cannot say who moves up when a total falls. Ties are broken
    by key, the lesser first, and a total of 0 counts as absent.
    """

    n: int
    exact: Exact

    def __post_init__(self) -> None:
        checks.positive(self.n, "n")

    def _map(self) -> MapOf[Amounts, Number]:
        return MapOf(Total(self.exact))

    def zero(self) -> ByKey[Amounts]:
        """Return the empty map."""
        return self._map().zero()

    def combine(self, a: ByKey[Amounts], b: ByKey[Amounts], /) -> ByKey[Amounts]:
        """Add key by key."""
        return self._map().combine(a, b)

    def lift(self, key: Hashable, amount: Number = 1) -> ByKey[Amounts]:
        """Return the map of one amount."""
        return self._map().lift(key, amount)

    def value(self, contribution: ByKey[Amounts], /) -> Ranking:
        """Return the n greatest (key, total), greatest first."""
        totals = self._map().value(contribution).items()
        ranked = sorted(totals, key=lambda item: (-item[1], canonical_order(item[0])))
        return tuple((key, total) for key, total in ranked if total)[: self.n]


class TopN(Replica[ByKey[Amounts], Ranking]):
    """The n keys with the greatest totals, derived from the totals of all keys."""

    aggregate: Top

    def __init__(self, source: str, n: int, *, of: type[Number] = int) -> None:
        super().__init__(Top(n, Exact(of)), source)

    def add(self, key: Hashable, amount: Number = 1) -> None:
        """Add to the total of `key`."""
        self.contribute(self.aggregate.lift(key, amount))

    def subtract(self, key: Hashable, amount: Number = 1) -> None:
        """Take off the total of `key`."""
        self.contribute(self.aggregate.lift(key, -amount))
