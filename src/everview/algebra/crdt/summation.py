"""Sum: what was added less what was subtracted, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.exact import Exact, Number
from everview.algebra.crdt.replica import Replica

Amounts = tuple[Fraction, Fraction]
"""What was added and what was subtracted, neither of them negative."""


@dataclass(frozen=True, slots=True)
class Total(Aggregate[Amounts, Number]):
    """Pairs (added, subtracted) under +, read as their difference (Titan, Figure 1)."""

    exact: Exact

    def zero(self) -> Amounts:
        """Return (0, 0)."""
        return Fraction(0), Fraction(0)

    def combine(self, a: Amounts, b: Amounts, /) -> Amounts:
        """Add half by half."""
        return a[0] + b[0], a[1] + b[1]

    def lift(self, amount: Number) -> Amounts:
        """Route an amount by its sign, so that both halves only grow: adding −5 is subtracting 5."""
        exact = self.exact.enter(amount)
        return (exact, Fraction(0)) if exact >= 0 else (Fraction(0), -exact)

    def value(self, contribution: Amounts, /) -> Number:
        """Return the difference, rounded once."""
        return self.exact.leave(contribution[0] - contribution[1])


class Sum(Replica[Amounts, Number]):
    """The exact sum of numbers of one kind: int, Decimal, or float (rounded once, when read)."""

    aggregate: Total

    def __init__(self, source: str, *, of: type[Number] = int) -> None:
        super().__init__(Total(Exact(of)), source)

    def add(self, amount: Number) -> None:
        """Add a number of either sign."""
        self.contribute(self.aggregate.lift(amount))

    def subtract(self, amount: Number) -> None:
        """Subtract a number of either sign."""
        added, subtracted = self.aggregate.lift(amount)
        self.contribute((subtracted, added))
