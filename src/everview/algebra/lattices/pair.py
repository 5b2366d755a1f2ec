"""Pair: two lattices side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from everview.algebra.laws import Lattice

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Pair(Lattice[tuple[A, B]], Generic[A, B]):
    """The product: both halves are joined independently."""

    first: Lattice[A]
    second: Lattice[B]

    def bottom(self) -> tuple[A, B]:
        """Return (⊥, ⊥)."""
        return self.first.bottom(), self.second.bottom()

    def join(self, a: tuple[A, B], b: tuple[A, B], /) -> tuple[A, B]:
        """Join half by half."""
        return self.first.join(a[0], b[0]), self.second.join(a[1], b[1])

    def leq(self, a: tuple[A, B], b: tuple[A, B], /) -> bool:
        """Compare half by half: both must be below."""
        return self.first.leq(a[0], b[0]) and self.second.leq(a[1], b[1])
