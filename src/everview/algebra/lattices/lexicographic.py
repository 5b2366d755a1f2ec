"""Lexicographic: a version, and what that version says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from everview.algebra.laws import Lattice

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Lexicographic(Lattice[tuple[A, B]], Generic[A, B]):
    """The first half decides; the second halves are joined where the first ones are equal.

    Intuitively, a newer version replaces what an older one said. Where the first halves are incomparable
    their join is a version that nobody has written yet, so it says nothing: the second half is ⊥.
    """

    first: Lattice[A]
    second: Lattice[B]

    def bottom(self) -> tuple[A, B]:
        """Return (⊥, ⊥)."""
        return self.first.bottom(), self.second.bottom()

    def join(self, a: tuple[A, B], b: tuple[A, B], /) -> tuple[A, B]:
        """Return the newer of the two, or their join where neither is."""
        below, above = self.first.leq(a[0], b[0]), self.first.leq(b[0], a[0])
        if below and above:
            return a[0], self.second.join(a[1], b[1])
        if below or above:
            return b if below else a
        return self.first.join(a[0], b[0]), self.second.bottom()

    def leq(self, a: tuple[A, B], b: tuple[A, B], /) -> bool:
        """Compare by the first half, then by the second."""
        if not self.first.leq(a[0], b[0]):
            return False
        return not self.first.leq(b[0], a[0]) or self.second.leq(a[1], b[1])
