"""Columns of integers that know their bounds, so that most questions about them look at no cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

__all__ = ["Integers", "is_same", "within"]


class Integers(list[int]):
    """Integers that were read from a column, and bounds that they keep: its bytes can hold no others."""

    __slots__ = ("greatest", "least")

    def __init__(self, values: Iterable[int], least: int, greatest: int) -> None:
        super().__init__(values)
        self.least, self.greatest = least, greatest


def within(values: Sequence[int], least: int, greatest: int) -> bool:
    """Whether all integers lie between two; mostly the bounds of their column say so."""
    if isinstance(values, Integers) and least <= values.least and values.greatest <= greatest:
        return True
    return not values or (least <= min(values) and max(values) <= greatest)


def is_same(column: Sequence[Any]) -> TypeGuard[Integers]:
    """Whether a column is known to have one integer in all its rows; there is a row at least."""
    return isinstance(column, Integers) and column.least == column.greatest and bool(column)
