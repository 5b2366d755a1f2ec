"""Average: an exact sum and a count, divided when read."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.exact import Exact, Number
from everview.algebra.crdt.replica import Replica

SumAndCount = tuple[Fraction, int]


@dataclass(frozen=True, slots=True)
class Mean(Aggregate[SumAndCount, float | Decimal | None]):
    """Pairs (sum, count) under +, read as their quotient."""

    exact: Exact

    def zero(self) -> SumAndCount:
        """Return (0, 0)."""
        return Fraction(0), 0

    def combine(self, a: SumAndCount, b: SumAndCount, /) -> SumAndCount:
        """Add half by half."""
        return a[0] + b[0], a[1] + b[1]

    def lift(self, observed: Number) -> SumAndCount:
        """Return (observed, 1)."""
        return self.exact.enter(observed), 1

    def value(self, contribution: SumAndCount, /) -> float | Decimal | None:
        """Return the mean, None of nothing."""
        total, count = contribution
        return self.exact.quotient(total, count) if count else None


class Average(Replica[SumAndCount, float | Decimal | None]):
    """The mean of numbers of one kind, rounded once: a float, of Decimal a Decimal of 38 digits."""

    aggregate: Mean

    def __init__(self, source: str, *, of: type[Number] = float) -> None:
        super().__init__(Mean(Exact(of)), source)

    def add(self, observed: Number) -> None:
        """Take one more number into the mean."""
        self.contribute(self.aggregate.lift(observed))
