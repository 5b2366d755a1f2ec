"""Messages of a Parquet file."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from everview.errors import MissingDependencyError, StoreError
from everview.streams.windows.sources.base import Source, changed

__all__ = ["ParquetRows"]


class ParquetRows(Source):
    """One message a row, a dict of its columns, numbered from 0 in the order of the file.

    A StoreError says if it became shorter, or another, under a processor.
    """

    def __init__(self, path: str | os.PathLike[str], *, columns: Iterable[str] | None = None) -> None:
        self._path = Path(path)
        self._columns = None if columns is None else list(columns)
        self._parquet = _pyarrow_parquet()
        self._group: tuple[int, Any] = (-1, None)
        """The row group that was read last: its number, and its rows."""
        self._found: tuple[int, list[Any]] = (0, [])
        """The rows that were given last, and the number of the first."""
        self._before: tuple[int, str | None] = (0, "")
        """A number, and the digest of the row before it: where those rows begin."""
        self._seen: tuple[int, ...] = ()
        """What tells the file from another, without reading it."""

    async def read(self, offset: int, limit: int) -> Sequence[tuple[int, Any]]:
        """Return the next rows, of one row group at a time."""
        return await asyncio.to_thread(self._read, offset, limit)

    def release(self, offset: int) -> None:
        """Keep the file: it is not ours."""

    def mark(self, offset: int) -> str | None:
        """Return a digest of the row before one of those that were given last, or before the next."""
        first, rows = self._found
        if offset == self._before[0]:
            return self._before[1]
        return _digest(rows[offset - first - 1]) if first < offset <= first + len(rows) else None

    async def check(self, offset: int, mark: str) -> None:
        """Refuse a file that has not the row before `offset` that `mark` is of."""
        await asyncio.to_thread(self._check, offset, mark)

    def _check(self, offset: int, mark: str) -> None:
        rows = self._slice(offset - 1, 1) if offset else []
        if offset and (not rows or _digest(rows[0]) != mark):
            what = "is another one than was read" if rows else "is not there any more"
            raise changed(self._path, f"row {offset} {what}")

    def _read(self, offset: int, limit: int) -> list[tuple[int, Any]]:
        mark = self.mark(offset)
        if self._is_another() and mark:
            self._check(offset, mark)
        rows = self._slice(offset, limit)
        self._before, self._found = (offset, mark), (offset, rows)
        return list(enumerate(rows, offset))

    def _is_another(self) -> bool:
        """Whether the file was written or replaced since it was read; what was read of it is forgotten."""
        try:
            status = self._path.stat()
        except OSError:
            return True  # reading it says why
        before, self._seen = self._seen, (status.st_ino, status.st_size, status.st_mtime_ns)
        if before in ((), self._seen):
            return False
        self._group = (-1, None)
        return True

    def _slice(self, offset: int, limit: int) -> list[Any]:
        try:
            with self._parquet.ParquetFile(self._path) as file:
                first = 0
                for number in range(file.num_row_groups):
                    count = file.metadata.row_group(number).num_rows
                    if first <= offset < first + count:
                        rows: list[Any] = self._rows(file, number).slice(offset - first, limit).to_pylist()
                        return rows
                    first += count
        except (OSError, ValueError) as error:
            raise StoreError(f"{self._path} cannot be read: {error}", path=str(self._path)) from None
        return []

    def _rows(self, file: Any, number: int) -> Any:
        if self._group[0] != number:
            self._group = (number, file.read_row_group(number, columns=self._columns))
        return self._group[1]


def _digest(row: Any) -> str:
    return hashlib.blake2b(repr(row).encode(), digest_size=8).hexdigest()


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an optional part
    except ImportError:
        raise MissingDependencyError(
            "reading Parquet needs pyarrow: pip install pyarrow, or 'everview[hub]' which brings it"
        ) from None
    return pyarrow.parquet
