"""How rows travel between tasks: packed in columns, each to the task that has its range of hashes.

Spark moves few large binary values and never looks into them. A row is `target, stream, payload`: the number
of a range, what the rows are, and the rows themselves as an Arrow stream with their hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from everview.engines.spark.hashing import SEED, Hashes
from everview.hub.runs import HASH

__all__ = [
    "PARCELS",
    "PARCEL_SCHEMA",
    "Parcel",
    "batched",
    "parcels",
    "range_of",
    "read_rows",
    "scattered",
    "target_of_all",
]

PARCELS = "target INT, stream STRING, payload BINARY"
PARCEL_SCHEMA = pa.schema([("target", pa.int32()), ("stream", pa.string()), ("payload", pa.binary())])

_STEPS = 2**16
"""Ranges are made of so many steps."""

_ROWS = 100_000
"""How many rows a parcel has at most."""

_LARGE = 1_000_000
"""Bytes of a parcel that goes alone."""

Batches = Iterator[pa.RecordBatch]
Payload: TypeAlias = Any
"""Bytes, or a buffer of Arrow's."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """Rows on their way."""

    target: int
    stream: str
    payload: Payload


def batched(parcels: Iterable[Parcel]) -> Batches:
    """Parcels as Spark takes them: each batch costs it as much as some 30 kB, so small ones go together."""
    waiting: list[Parcel] = []
    size = 0
    for parcel in parcels:
        if len(parcel.payload) >= _LARGE:
            yield _batch([parcel])
            continue
        waiting.append(parcel)
        size += len(parcel.payload)
        if size >= _LARGE:
            yield _batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(parcels: Sequence[Parcel]) -> pa.RecordBatch:
    payloads = [pa.py_buffer(parcel.payload) for parcel in parcels]
    ends = np.cumsum([0, *(payload.size for payload in payloads)], dtype=np.int32)
    data = payloads[0] if len(payloads) == 1 else pa.py_buffer(b"".join(payloads))
    arrays = [
        pa.array([parcel.target for parcel in parcels], pa.int32()),
        pa.array([parcel.stream for parcel in parcels], pa.string()),
        pa.Array.from_buffers(pa.binary(), len(parcels), [None, pa.py_buffer(ends), data]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PARCEL_SCHEMA)


def range_of(target: int, targets: int) -> tuple[int, int]:
    """The least and the greatest hash that go to a target."""
    first, after = (-(-at * _STEPS // targets) for at in (target, target + 1))
    half = _STEPS // 2
    return (first - half) << 48, ((after - half) << 48) - 1


def _targets_of(hashes: Hashes, targets: int) -> Hashes:
    return ((hashes >> np.int64(48)) + np.int64(_STEPS // 2)) * np.int64(targets) >> np.int64(16)


def target_of_all(targets: int) -> int:
    """Where rows go that have no key: all to one."""
    return int(_targets_of(np.array([SEED], dtype=np.int64), targets)[0])


def scattered(stream: str, rows: pa.Table, hashes: Hashes, targets: int) -> Iterator[Parcel]:
    """Rows packed for the targets that have their hashes."""
    wanted = _targets_of(hashes, targets).astype(np.uint16)
    order = np.argsort(wanted, kind="stable")
    ends = np.searchsorted(wanted[order], np.arange(targets + 1, dtype=np.uint16))
    sorted_rows = with_hashes(rows, hashes).take(pa.array(order))
    for target in range(targets):
        start, end = int(ends[target]), int(ends[target + 1])
        if end > start:
            yield from packed_for(target, stream, sorted_rows.slice(start, end - start))


def with_hashes(rows: pa.Table, hashes: Hashes) -> pa.Table:
    """The hash before the columns."""
    return pa.Table.from_arrays([pa.array(hashes), *rows.columns], names=[HASH, *rows.column_names])


def packed_for(target: int, stream: str, rows: pa.Table) -> Iterator[Parcel]:
    """Rows, hashes among them, in parcels to one target."""
    for start in range(0, rows.num_rows, _ROWS):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows.slice(start, _ROWS))
        yield Parcel(target, stream, sink.getvalue())


def parcels(batches: Iterable[pa.RecordBatch]) -> Iterator[Parcel]:
    """The parcels that a task was given."""
    for batch in batches:
        targets, streams, payloads = batch.columns
        names = streams.to_pylist()
        for number in range(batch.num_rows):
            yield Parcel(targets[number].as_py(), names[number], payloads[number].as_buffer())


def read_rows(payloads: Iterable[Payload]) -> pa.Table:
    """The rows of a stream's parcels, hashes first."""
    return pa.concat_tables([pa.ipc.open_stream(payload).read_all() for payload in payloads])
