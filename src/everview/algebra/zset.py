"""Z-sets: relations whose tuples have integer weights, so that a change is a relation too (Rings §2.2)."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from everview.algebra import checks
from everview.algebra.laws import Group

R = TypeVar("R", bound=Hashable)


class ZSet(Generic[R]):
    """Row → weight, a finite map into the integers; a row that is missing has weight 0.

    Insertion is weight +1, deletion −1, and an update is both; a relation is a Z-set whose weights are
    its multiplicities. Z-sets are an abelian group under +, weight by weight.
    """

    __slots__ = ("_weights",)

    def __init__(self, weights: Mapping[R, int] | Iterable[tuple[R, int]] = ()) -> None:
        summed: dict[R, int] = {}
        for row, weight in weights.items() if isinstance(weights, Mapping) else weights:
            checks.hashable(row, "a row of a Z-set")
            summed[row] = summed.get(row, 0) + checks.integer(weight, f"the weight of {row!r}")
        self._weights = {row: weight for row, weight in summed.items() if weight}

    @classmethod
    def of(cls, rows: Iterable[R], weight: int = 1) -> ZSet[R]:
        """Return these rows, duplicates counted, each with `weight`."""
        return cls((row, weight) for row in rows)

    def __getitem__(self, row: R) -> int:
        return self._weights.get(row, 0)

    def __contains__(self, row: R) -> bool:
        return row in self._weights

    def __iter__(self) -> Iterator[R]:
        return iter(self._weights)

    def __len__(self) -> int:
        """Return the number of rows whose weight is not 0."""
        return len(self._weights)

    def items(self) -> ItemsView[R, int]:
        """Return the (row, weight) pairs."""
        return self._weights.items()

    def __add__(self, other: object) -> ZSet[R]:
        return ZSet([*self.items(), *other.items()]) if isinstance(other, ZSet) else NotImplemented

    def __neg__(self) -> ZSet[R]:
        return ZSet({row: -weight for row, weight in self.items()})

    def __sub__(self, other: object) -> ZSet[R]:
        return self + -other if isinstance(other, ZSet) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZSet) and self._weights == other._weights

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def is_positive(self) -> bool:
        """Say whether this is a relation: no weight is negative."""
        return all(weight > 0 for weight in self._weights.values())

    def __repr__(self) -> str:
        inner = ", ".join(f"{row!r}: {weight:+d}" for row, weight in self.items())
        return f"ZSet({{{inner}}})"


@dataclass(frozen=True, slots=True)
class ZSets(Group[ZSet[R]], Generic[R]):
    """The abelian group of Z-sets."""

    def zero(self) -> ZSet[R]:
        """Return the empty change."""
        return ZSet()

    def plus(self, a: ZSet[R], b: ZSet[R], /) -> ZSet[R]:
        """Return a + b."""
        return a + b

    def negate(self, a: ZSet[R], /) -> ZSet[R]:
        """Return −a."""
        return -a
