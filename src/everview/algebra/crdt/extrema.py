"""Minimum and Maximum: the extreme value seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.replica import Replica
from everview.algebra.lattices.extremum import Max, Min, precedes
from everview.errors import DataError

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Extreme(Aggregate[V | None, V | None], Generic[V]):
    """Values of one type under max or min; None is the extreme of nothing."""

    kind: type[V]
    by: Max[V] | Min[V]

    def zero(self) -> V | None:
        """Return None."""
        return None

    def combine(self, a: V | None, b: V | None, /) -> V | None:
        """Return the more extreme one."""
        return self.by.join(a, b)

    def lift(self, observed: V) -> V | None:
        """Return a value of the declared type that has a place in its order."""
        if type(observed) is not self.kind:
            raise DataError(
                f"expected {self.kind.__name__}, not {type(observed).__name__} {observed!r}",
                value=observed,
                expected=self.kind.__name__,
            )
        precedes(observed, observed)
        return observed

    def value(self, contribution: V | None, /) -> V | None:
        """Return the extreme, None of nothing."""
        return contribution


class _ExtremeReplica(Replica[Any, Any]):
    aggregate: Extreme[Any]

    def add(self, observed: Any) -> None:
        """Take one more value into account."""
        self.contribute(self.aggregate.lift(observed))


class Maximum(_ExtremeReplica):
    """The greatest value seen, of one ordered type."""

    def __init__(self, source: str, *, of: type[Any] = int) -> None:
        super().__init__(Extreme(of, Max()), source)


class Minimum(_ExtremeReplica):
    """The least value seen, of one ordered type."""

    def __init__(self, source: str, *, of: type[Any] = int) -> None:
        super().__init__(Extreme(of, Min()), source)
