"""Batches as they come from Spark, gathered into tables that are worth the work on one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

__all__ = ["gathered_batches"]


def gathered_batches(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.Table]:
    """The same rows in tables, each ended by the batch with which it has so many rows, or so many bytes."""
    waiting: list[pa.RecordBatch] = []
    has = weighs = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            has += batch.num_rows
            weighs += batch.nbytes
        if has >= rows or weighs >= size:
            yield pa.Table.from_batches(waiting)
            waiting, has, weighs = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)
