"""Reading rows up to a number of bytes: texts and blobs may be of any length, so they are weighed.

What has neither is read as fast as SQLite gives it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from everview.engines.sqlite.parts import Row
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.plan import Schema
from everview.language.sizes import octets

__all__ = ["Bound", "Weights", "fetch", "long_columns", "weight"]

Weights = tuple[int, ...]
"""The columns whose values are weighed."""


class Bound(NamedTuple):
    """How much is read: so many rows, or so many bytes in the columns that are weighed, at most about."""

    rows: int
    size: int
    weighed: Weights


_SHORT = 256
"""A row of so few characters weighs as much as it has characters."""


def long_columns(schema: Schema) -> Weights:
    """Return which columns have texts or bytes, whose length is anybody's guess."""
    return tuple(at for at, field in enumerate(schema) if column_type(field.type) in ("TEXT", "BLOB"))


def weight(row: Row, weighed: Weights) -> int:
    """Return the bytes of a row's texts and blobs; short ones count by characters."""
    found = 0
    for at in weighed:
        if cell := row[at]:
            found += len(cell)
    return found if found <= _SHORT else sum(octets(row[at]) for at in weighed)


def fetch(rows: Iterable[Row], bound: Bound) -> tuple[list[Row], int]:
    """Return rows within the bound, or one that is beyond it alone, and how many bytes they use up.

    Where the next row would not fit, they use up all there is. This is `weight` row by row, without a call.
    """
    weighed, most = bound.weighed, bound.size
    if not weighed:
        return list(islice(rows, bound.rows)), 0
    found: list[Row] = []
    used = 0
    for row in islice(rows, bound.rows):
        before = used
        for at in weighed:
            if cell := row[at]:
                used += len(cell)
        if used > before + _SHORT:
            used = before + sum(octets(row[at]) for at in weighed)
        if used > most and found:
            return found, most
        found.append(row)
    return found, used
