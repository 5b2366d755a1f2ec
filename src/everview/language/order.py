"""The total order of values and rows that `rows()` and every sort follow.

Ascending column by column; NULL after everything, NaN after every other number, text by its UTF-8
bytes. Python compares strings by code point, which is the order of their UTF-8 bytes, so no encoding
is needed; −0.0 was made 0.0 at the door, so equal numbers are equal bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["less_or_equal", "order_key", "row_order_key", "sorted_rows"]


def order_key(value: Any) -> tuple[int, Any]:
    """A key that Python's own comparison orders as we do; values of one column only."""
    if value is None:
        return (2, 0)
    if value != value:  # noqa: PLR0124  (NaN, the one value that differs from itself)
        return (1, 0)
    return (0, value)


def row_order_key(row: Sequence[Any]) -> tuple[tuple[int, Any], ...]:
    """The key of a whole row."""
    return tuple([order_key(value) for value in row])


def less_or_equal(left: Any, right: Any) -> bool:
    """Whether `left` comes before `right` or is the same value."""
    return order_key(left) <= order_key(right)


def sorted_rows(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows in order, duplicates repeated.

    Rows without NULL or NaN compare as they are, which is several times faster.
    """
    listed = list(rows)
    width = len(listed[0]) if listed else 0
    if all(_is_plain([row[index] for row in listed]) for index in range(width)):
        listed.sort()
    else:
        listed.sort(key=row_order_key)
    return listed


def _is_plain(column: list[Any]) -> bool:
    """Whether Python's own comparison orders these values as we do."""
    types = set(map(type, column))
    if type(None) in types:
        return False
    return float not in types or not any(map(math.isnan, column))
