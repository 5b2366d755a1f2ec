"""Runs: kept rows in sorted, immutable Arrow files that are mapped into memory and searched.

A run has the hash of a row's key (`h`), its rank among the rows of the key where there is an order (`o`), and
the columns; sorted by hash, then rank. A row that changes is written again, into a newer run. What stands for
it then is found by adding up its sums, or, in a run table that keeps the latest, by its greatest version.
Several tables' runs may lie in one file, each from an offset on.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from everview.engines.spark.hashing import Hashes
from everview.hub.ranks import Rank, ranks

__all__ = [
    "FOLDER",
    "HASH",
    "RANK",
    "Layout",
    "Part",
    "Run",
    "distinct",
    "equal",
    "gathered",
    "merged",
    "packed",
    "sealed",
    "shared_hashes",
    "spread",
]

FOLDER = "runs"
HASH, RANK = "h", "o"
_ALIGNMENT = 64
_SHARED = b"shared"
_SPREAD = np.int64(56)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table's rows are merged: the first `width` columns say which row, those behind them add up.

    With `latest` the last column is a version instead, and the row with the greatest one counts.
    """

    width: int
    order: tuple[Rank, ...] = ()
    nulls: bool = True
    latest: bool = False
    key: tuple[int, ...] | None = None
    """Which columns say which row, where that are not the first ones; of ranked rows, their key."""

    @property
    def identity(self) -> tuple[int, ...]:
        """The columns that say which row."""
        return tuple(range(self.width)) if self.key is None or self.order else self.key


@dataclass(frozen=True, slots=True)
class Part:
    """A file, or a piece of one, that holds the rows of a run whose hashes lie between two, both included."""

    path: str
    offset: int
    length: int
    rows: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Run:
    """Parts that do not overlap."""

    rows: int
    parts: tuple[Part, ...]


def distinct(hashes: Hashes) -> Hashes:
    """Each once, in their order."""
    ordered = np.sort(hashes)
    return np.concatenate((ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]))


def spread(hashes: Hashes) -> Hashes:
    """One of 256 hashes: for rows that are all of one key, so that no single task has them all."""
    return (hashes >> _SPREAD) << _SPREAD


def sealed(table: pa.Table, hashes: Hashes, layout: Layout) -> pa.Table:
    """The rows of a run from rows in any order, each once."""
    return _sorted(_keyed(table, hashes, layout), layout)


def gathered(table: pa.Table, hashes: Hashes, layout: Layout) -> pa.Table:
    """The rows of a run from rows in any order, as often as they come."""
    return merged([_keyed(table, hashes, layout)], layout)


def _keyed(table: pa.Table, hashes: Hashes, layout: Layout) -> pa.Table:
    """Rows with their hashes and ranks."""
    columns: list[pa.Array | pa.ChunkedArray] = [pa.array(hashes)]
    names = [HASH]
    if layout.order:
        chosen = [_one(table.column(key.column)) for key in layout.order]
        columns.append(ranks(chosen, layout.order, nulls=layout.nulls))
        names.append(RANK)
    return pa.Table.from_arrays([*columns, *table.columns], names=[*names, *table.column_names])


def _one(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    found = column.combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _sorted(table: pa.Table, layout: Layout) -> pa.Table:
    if layout.order:
        order = pc.sort_indices(table, sort_keys=[(HASH, "ascending"), (RANK, "ascending")])
        return _marked(table.take(order), layout)
    hashes = table.column(HASH).to_numpy()
    if np.all(hashes[:-1] <= hashes[1:]):
        return table
    return table.take(pa.array(np.argsort(hashes, kind="stable")))


def _marked(table: pa.Table, layout: Layout) -> pa.Table:
    """Ranked rows with a note of the hashes that two keys share: their ranks do not count from one end."""
    hashes = table.column(HASH).to_numpy()
    again = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    differs = np.zeros(len(again), dtype=bool)
    for place in layout.key or ():
        column = table.column(2 + place)
        differs |= ~equal(column.take(pa.array(again)), column.take(pa.array(again - 1)))
    shared = np.unique(hashes[again[differs]]).tolist()
    return table.replace_schema_metadata({_SHARED: json.dumps(shared)} if shared else None)


def shared_hashes(table: pa.Table) -> list[int]:
    """The hashes that two keys share in a run of ranked rows."""
    noted = (table.schema.metadata or {}).get(_SHARED)
    found: list[int] = json.loads(noted) if noted is not None else []
    return found


def merged(tables: Sequence[pa.Table], layout: Layout) -> pa.Table:
    """What several runs, or pieces of them, say together; rows that are gone are left out."""
    table = pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
    if layout.latest:
        return _latest(table, layout)
    head = 2 if layout.order else 1
    names = table.column_names
    keys, sums = names[: head + layout.width], names[head + layout.width :]
    grouped = table.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in sums])
    columns = [*(grouped.column(name) for name in keys), *(_summed(grouped, table, name) for name in sums)]
    found = pa.Table.from_arrays(columns, schema=table.schema.remove_metadata())
    there = [pc.not_equal(found.column(name), pa.scalar(0, found.schema.field(name).type)) for name in sums]
    present = there[0]
    for more in there[1:]:
        present = pc.or_(present, more)
    return _sorted(found.filter(present), layout)


def _summed(grouped: pa.Table, table: pa.Table, name: str) -> pa.ChunkedArray:
    return grouped.column(f"{name}_sum").cast(table.schema.field(name).type)


def _latest(table: pa.Table, layout: Layout) -> pa.Table:
    """Of each row the one with the greatest version. Rows with one hash are nearly always one row."""
    version = table.column_names[-1]
    order = pc.sort_indices(table, sort_keys=[(HASH, "ascending"), (version, "descending")])
    table = table.take(order)
    hashes = table.column(HASH).to_numpy()
    first = np.ones(len(hashes), dtype=bool)
    first[1:] = hashes[1:] != hashes[:-1]
    if first.all():
        return table
    leaders = np.flatnonzero(first)[np.cumsum(first) - 1]
    followers = np.flatnonzero(~first)
    keys = [table.column_names[1 + place] for place in layout.identity]
    mine, theirs = table.select(keys).take(followers), table.select(keys).take(leaders[followers])
    same = np.ones(len(followers), dtype=bool)
    for name in keys:
        same &= equal(mine.column(name), theirs.column(name))
    if same.all():
        return table.filter(pa.array(first))
    return table.take(pa.array(_first_of_each(table, keys)))


def equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Row by row; NULL is NULL, and NaN is NaN."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    equal = pc.or_(pc.fill_null(pc.equal(left, right), False), both_null)
    if pa.types.is_floating(left.type):
        both_nan = pc.and_(pc.fill_null(pc.is_nan(left), False), pc.fill_null(pc.is_nan(right), False))
        equal = pc.or_(equal, both_nan)
    found: NDArray[np.bool_] = equal.to_numpy(zero_copy_only=False)
    return found


def _first_of_each(table: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    numbered = table.append_column("at", pa.array(np.arange(table.num_rows)))
    grouped = numbered.group_by([HASH, *keys], use_threads=False).aggregate([("at", "min")])
    places: NDArray[np.int64] = np.sort(grouped.column("at_min").to_numpy())
    return places


def packed(path: str, tables: Iterable[pa.Table]) -> tuple[bytes, list[Part]]:
    """Runs in one file: its content, and where each lies. A run of no rows has no place."""
    buffer = io.BytesIO()
    parts: list[Part] = []
    for table in tables:
        buffer.write(bytes(-buffer.tell() % _ALIGNMENT))
        start = buffer.tell()
        with pa.ipc.new_file(buffer, table.schema) as writer:
            for batch in table.combine_chunks().to_batches():
                writer.write_batch(batch)
        hashes = table.column(HASH)
        parts.append(
            Part(
                path,
                start,
                buffer.tell() - start,
                table.num_rows,
                hashes[0].as_py(),
                hashes[table.num_rows - 1].as_py(),
            )
        )
    return buffer.getvalue(), parts
