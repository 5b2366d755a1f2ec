"""Or: a flag that, once raised, stays raised."""

from __future__ import annotations

from dataclasses import dataclass

from everview.algebra.laws import Lattice


@dataclass(frozen=True, slots=True)
class Or(Lattice[bool]):
    """Logical or, from False upwards."""

    def bottom(self) -> bool:
        """Return False."""
        return False

    def join(self, a: bool, b: bool, /) -> bool:  # noqa: FBT001 - booleans are the elements
        """Return a ∨ b."""
        return a or b

    def leq(self, a: bool, b: bool, /) -> bool:  # noqa: FBT001 - booleans are the elements
        """Return a → b."""
        return b or not a
