"""WriteOnce: a cell that is written once, by whoever knows the only right value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from everview.algebra.laws import Lattice
from everview.errors import NonDeterminismError

V = TypeVar("V")


class Cell(Enum):
    """The two cells that hold no value: nothing written, and two different values written."""

    EMPTY = "⊥"
    CONFLICT = "⊤"

    def __repr__(self) -> str:
        return self.value


EMPTY: Final = Cell.EMPTY
CONFLICT: Final = Cell.CONFLICT


@dataclass(frozen=True, slots=True)
class WriteOnce(Lattice[V | Cell], Generic[V]):
    """A flat lattice: ⊥ below every value, ⊤ above every value, values incomparable.

    Merging never fails: two different values join to ⊤, and reading ⊤ is what raises. A value is told
    from another by type and by `==`, so that 1, 1.0 and True do not pass for each other.
    """

    def bottom(self) -> V | Cell:
        """Return the empty cell."""
        return EMPTY

    def join(self, a: V | Cell, b: V | Cell, /) -> V | Cell:
        """Return the value that both agree on, or ⊤."""
        if a is EMPTY or b is EMPTY:
            return b if a is EMPTY else a
        return a if _same(a, b) else CONFLICT

    def leq(self, a: V | Cell, b: V | Cell, /) -> bool:
        """Everything is above ⊥ and below ⊤."""
        return a is EMPTY or b is CONFLICT or _same(a, b)

    def read(self, cell: V | Cell, what: str = "this cell") -> V | None:
        """Return the value, None if nothing is written; raise on ⊤."""
        if cell is CONFLICT:
            raise NonDeterminismError(
                f"{what} was written with two different values; its writers are not deterministic"
            )
        return None if isinstance(cell, Cell) else cell


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and a == b
