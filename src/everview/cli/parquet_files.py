"""Parquet: columns by name, types as the relation has them; it needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from everview.cli.chunks import CHUNK, Chunk, Place, to_rows, unknown_column
from everview.errors import DataError, MissingDependencyError
from everview.language.relations import Relation

__all__ = ["read_parquet"]


def read_parquet(
    stream: BinaryIO, source: str, relation: Relation, length: int = 0, size: int = CHUNK
) -> Iterator[Chunk]:
    """The rows of a Parquet file of some `length` in bytes for a relation."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional part
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            "Parquet files need pyarrow: pip install 'everview[hub]', or use CSV or JSON lines"
        ) from None
    try:
        file = parquet.ParquetFile(stream)
        for name in file.schema_arrow.names:
            if name not in relation.columns:
                raise unknown_column(relation, name, source)
        start = 0
        for batch in file.iter_batches(batch_size=size):
            columns: dict[str, Sequence[Any]] = {
                name: _values(pa, batch.column(name)) for name in batch.schema.names
            }
            rows = to_rows(relation, columns, batch.num_rows)
            before, start = start, start + len(rows)
            yield Chunk(rows, _place(source, before), length * start // file.metadata.num_rows)
    except pa.ArrowException as error:
        raise DataError(f"{source} cannot be read as Parquet: {error}") from None


def _place(source: str, before: int) -> Place:
    return lambda index: f"{source}, row {before + index + 1}"


def _values(pa: Any, column: Any) -> list[Any]:
    """Python values; timestamps in microseconds, refused if that would cut nanoseconds off."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz="UTC" if column.type.tz else None))
    return list(column.to_pylist())
