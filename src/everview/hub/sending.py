"""What a task does that reads what has arrived: many rows at once, each sent to the task of its range."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from everview.engines.spark.types import arrow_schema
from everview.hub.relations import LatticeTable
from everview.hub.routing import Batches, Parcel, batched, scattered
from everview.hub.tables import Hashed

__all__ = ["gathered_batches", "sending"]

_SENT_ROWS = 100_000
"""How many rows a task reads before it sends them on,"""

_SENT_BYTES = 32_000_000
"""or how many bytes, however few rows these are."""


def sending(table: LatticeTable, hashed: Hashed, targets: int) -> Callable[[Batches], Batches]:
    """The task that reads what has arrived for a relation, and sends it to where it is stored."""
    schema = arrow_schema(table.arrived.schema)

    def sent(batches: Batches) -> Iterator[Parcel]:
        for rows in gathered_batches(batches):
            cast = rows.cast(schema)
            yield from scattered(table.name, cast, hashed.of(table.schema, cast), targets)

    return lambda batches: batched(sent(batches))


def gathered_batches(batches: Batches) -> Iterator[pa.Table]:
    """So many rows at once that some go to every target."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows >= _SENT_ROWS or size >= _SENT_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)
