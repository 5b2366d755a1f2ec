"""What a task does that reads what has arrived: many rows at once, each sent to the task of its range."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from everview.engines.spark.types import arrow_schema
from everview.hub.gathering import gathered_batches
from everview.hub.relations import LatticeTable
from everview.hub.routing import Batches, Parcel, batched, scattered
from everview.hub.tables import Hashed

__all__ = ["sending"]

_SENT_ROWS = 100_000
"""How many rows a task reads before it sends them on,"""

_SENT_BYTES = 32_000_000
"""or how many bytes, however few rows these are."""


def sending(table: LatticeTable, hashed: Hashed, targets: int) -> Callable[[Batches], Batches]:
    """The task that reads what has arrived for a relation, and sends it to where it is stored."""
    schema = arrow_schema(table.arrived.schema)

    def sent(batches: Batches) -> Iterator[Parcel]:
        for rows in gathered_batches(batches, _SENT_ROWS, _SENT_BYTES):
            cast = rows.cast(schema)
            yield from scattered(table.name, cast, hashed.of(table.schema, cast), targets)

    return lambda batches: batched(sent(batches))
