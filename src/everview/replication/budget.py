"""The budget of a page: how many rows, and how many bytes of values, it may still take."""

from __future__ import annotations

from everview.engines.sqlite.parts import CHUNK_BYTES, Chunk, PartColumn

PAGE_ROWS = 20_000
PAGE_BYTES = CHUNK_BYTES
"""A page has about so many rows, or bytes of values, at most; or one row that alone has more."""

_STEP = 2_000
_CELL_BYTES = 8


class Budget:
    """What a page still has room for."""

    def __init__(self, rows: int = PAGE_ROWS, size: int = PAGE_BYTES) -> None:
        self.rows, self.size = rows, size
        self._whole = size

    @property
    def taken(self) -> int:
        """How many bytes have been taken."""
        return self._whole - self.size

    def fits(self, chunk: Chunk) -> bool:
        """Whether there is room for rows that were read; a row that never fits has a page of its own."""
        return not self.taken or chunk.size <= self.size

    def take(self, chunk: Chunk, columns: tuple[PartColumn, ...]) -> None:
        """Account for rows that were read."""
        self.rows -= len(chunk.rows)
        self.size -= _CELL_BYTES * len(chunk.rows) * len(columns) + chunk.size

    @property
    def is_used_up(self) -> bool:
        """Whether nothing more may be read."""
        return self.rows <= 0 or self.size <= 0

    def limit(self, columns: tuple[PartColumn, ...]) -> int:
        """How many rows of a part may be read next, however short they are."""
        return max(min(self.rows, _STEP, self.size // (_CELL_BYTES * len(columns))), 1)

    @property
    def room(self) -> int:
        """How many bytes of texts and blobs may be read next."""
        return max(self.size, 1)
