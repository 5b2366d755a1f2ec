"""The budget of a page: how many rows, and how many bytes of values, it may still take."""

from __future__ import annotations

from everview.engines.sqlite.parts import PartColumn, Row
from everview.engines.sqlite.scalars.storage import column_type

PAGE_ROWS = 20_000
PAGE_BYTES = 8 << 20
"""A page has about so many rows, or bytes of values, at most."""

_STEP = 2_000


class Budget:
    """What a page still has room for."""

    def __init__(self, rows: int = PAGE_ROWS, size: int = PAGE_BYTES) -> None:
        self.rows, self.size = rows, size

    def take(self, rows: list[Row], columns: tuple[PartColumn, ...]) -> None:
        """Account for rows that were read."""
        self.rows -= len(rows)
        self.size -= 8 * len(rows) * len(columns)
        for index in _long(columns):
            self.size -= sum(len(row[index] or b"") for row in rows)

    @property
    def left(self) -> int:
        """How many rows may be read next."""
        return max(min(self.rows, _STEP), 0) if self.size > 0 else 0


def _long(columns: tuple[PartColumn, ...]) -> list[int]:
    """Which columns have texts or bytes, whose length is anybody's guess."""
    return [
        index
        for index, column in enumerate(columns)
        if column.field is not None and column_type(column.field.type) in ("TEXT", "BLOB")
    ]
