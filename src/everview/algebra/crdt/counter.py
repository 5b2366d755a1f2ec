"""Counter: how many."""

from __future__ import annotations

from dataclasses import dataclass

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.replica import Replica


@dataclass(frozen=True, slots=True)
class Count(Aggregate[int, int]):
    """Natural numbers under +."""

    def zero(self) -> int:
        """Return 0."""
        return 0

    def combine(self, a: int, b: int, /) -> int:
        """Return a + b."""
        return a + b

    def lift(self, amount: int = 1) -> int:
        """Return the amount; a negative one is refused, because a count only grows."""
        return checks.natural(amount, "the amount to count")

    def value(self, contribution: int, /) -> int:
        """Return the count."""
        return contribution


class Counter(Replica[int, int]):
    """A count that only grows."""

    aggregate: Count

    def __init__(self, source: str) -> None:
        super().__init__(Count(), source)

    def add(self, amount: int = 1) -> None:
        """Count `amount` more; for amounts of either sign use Sum."""
        self.contribute(self.aggregate.lift(amount))
