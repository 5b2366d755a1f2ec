"""LastWriter: the row that was stamped last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from everview.algebra.clock import Stamp
from everview.algebra.lattices.extremum import Max
from everview.algebra.lattices.lexicographic import Lexicographic
from everview.algebra.lattices.write_once import Cell, WriteOnce
from everview.algebra.laws import Lattice

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class LastWriter(Lattice[tuple[Stamp | None, V | Cell]], Generic[V]):
    """(stamp, value), ordered by stamp; a stamp is used for one value only.

    A lexicographic pair of a stamp and a write-once cell: two values under one stamp join to ⊤, which
    raises when read rather than letting the order of arrival decide.
    """

    def _pair(self) -> Lexicographic[Stamp | None, V | Cell]:
        return Lexicographic(Max(), WriteOnce())

    def bottom(self) -> tuple[Stamp | None, V | Cell]:
        """Return the register that nobody has written."""
        return self._pair().bottom()

    def join(
        self, a: tuple[Stamp | None, V | Cell], b: tuple[Stamp | None, V | Cell], /
    ) -> tuple[Stamp | None, V | Cell]:
        """Return the later of the two."""
        return self._pair().join(a, b)

    def leq(self, a: tuple[Stamp | None, V | Cell], b: tuple[Stamp | None, V | Cell], /) -> bool:
        """Compare by stamp."""
        return self._pair().leq(a, b)

    def read(self, register: tuple[Stamp | None, V | Cell]) -> V | None:
        """Return the last writer's value, None if there is none."""
        cell: WriteOnce[V] = WriteOnce()
        return cell.read(register[1], f"the register stamped {register[0]}")
