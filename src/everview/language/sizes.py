"""How large a row may be: what a site accepts, every other one can be sent.

A row travels in one message, whole. So a row that is written here has at most `LARGEST_ROW` bytes of texts,
in UTF-8, and blobs; numbers, dates and the like do not count, for they are short. A message has room for four
times as much (`wire.LIMIT`): for the rest of its page, and for rows that came to be before there was a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.types import Kind

__all__ = ["LARGEST_ROW", "check_sizes", "octets"]

LARGEST_ROW = 16 << 20
"""How many bytes of texts and blobs a row may have that is inserted."""

_MOST_OCTETS = 4
"""How many bytes a character has at most in UTF-8."""


def octets(cell: str | bytes | None) -> int:
    """Return how many bytes a text, in UTF-8, or a blob has; None has none."""
    if cell is None:
        return 0
    return len(cell) if isinstance(cell, bytes) or cell.isascii() else len(cell.encode())


def check_sizes(relation: Relation, rows: Sequence[Sequence[Any]]) -> None:
    """Raise DataError if a row is too large to travel. The rows have been checked otherwise.

    The longest values of all rows together mostly show that none is.
    """
    places = [place for place, field in enumerate(relation.schema) if field.type.kind in _LONG]
    longest = 0
    for place in places:
        longest += max(map(len, filter(None, map(itemgetter(place), rows))), default=0)
    if longest * _MOST_OCTETS <= LARGEST_ROW:
        return
    for row in rows:
        sizes = {place: octets(row[place]) for place in places}
        total = sum(sizes.values())
        if total > LARGEST_ROW:
            place = max(sizes, key=lambda one: sizes[one])
            name = relation.schema[place].name
            raise DataError(
                f"{relation.name}.{name} is too long: it has {sizes[place]:,} of the row's {total:,} bytes, "
                f"and a row that is to reach other sites has at most {LARGEST_ROW:,} in all; "
                "keep large files elsewhere, and store where they are",
                relation=relation.name,
                column=name,
                expected=f"at most {LARGEST_ROW:,} bytes",
            )


_LONG = frozenset({Kind.TEXT, Kind.BLOB})
