"""Messages of a Parquet file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from everview.errors import MissingDependencyError, StoreError
from everview.streams.windows.sources.base import Source

__all__ = ["ParquetRows"]


class ParquetRows(Source):
    """One message a row, a dict of its columns, numbered from 0 in the order of the file."""

    def __init__(self, path: str | os.PathLike[str], *, columns: Iterable[str] | None = None) -> None:
        self._path = Path(path)
        self._columns = None if columns is None else list(columns)
        self._parquet = _pyarrow_parquet()
        self._group: tuple[int, Any] = (-1, None)
        """The row group that was read last: its number, and its rows."""

    async def read(self, offset: int, limit: int) -> Sequence[tuple[int, Any]]:
        """Return the next rows, of one row group at a time."""
        return await asyncio.to_thread(self._read, offset, limit)

    def release(self, offset: int) -> None:
        """Keep the file: it is not ours."""

    def _read(self, offset: int, limit: int) -> list[tuple[int, Any]]:
        try:
            with self._parquet.ParquetFile(self._path) as file:
                first = 0
                for number in range(file.num_row_groups):
                    count = file.metadata.row_group(number).num_rows
                    if first <= offset < first + count:
                        rows = self._rows(file, number).slice(offset - first, limit).to_pylist()
                        return list(enumerate(rows, offset))
                    first += count
        except (OSError, ValueError) as error:
            raise StoreError(f"{self._path} cannot be read: {error}", path=str(self._path)) from None
        return []

    def _rows(self, file: Any, number: int) -> Any:
        if self._group[0] != number:
            self._group = (number, file.read_row_group(number, columns=self._columns))
        return self._group[1]


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an optional part
    except ImportError:
        raise MissingDependencyError(
            "reading Parquet needs pyarrow: pip install pyarrow, or 'everview[hub]' which brings it"
        ) from None
    return pyarrow.parquet
