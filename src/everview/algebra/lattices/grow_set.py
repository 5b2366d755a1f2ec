"""GrowSet: a set that only grows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from everview.algebra.laws import Lattice

E = TypeVar("E", bound=Hashable)


@dataclass(frozen=True, slots=True)
class GrowSet(Lattice[frozenset[E]], Generic[E]):
    """Union of frozen sets, from the empty set upwards."""

    def bottom(self) -> frozenset[E]:
        """Return ∅."""
        return frozenset()

    def join(self, a: frozenset[E], b: frozenset[E], /) -> frozenset[E]:
        """Return a ∪ b."""
        return a | b

    def leq(self, a: frozenset[E], b: frozenset[E], /) -> bool:
        """Return a ⊆ b."""
        return a <= b
