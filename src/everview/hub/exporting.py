"""From the gate to a refresh: what has changed in the gate becomes writes, as a refresh takes them in.

They say what is there now: these rows are present, those are not, of a bag there are so many copies. So it
does no harm to say it twice, and after a crash a refresh exports again from the commit that the last record
names. Rows go from SQLite to Parquet in chunks, column by column.
"""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from everview.engines.spark.types import arrow_schema
from everview.engines.sqlite.rows.base import StoredRows
from everview.hub.changed import changed_sql
from everview.hub.files import Files
from everview.hub.gate import Columns, Gate
from everview.hub.inbox import Arrival, parquet_files
from everview.hub.memory import loaded_column, stored_column
from everview.hub.record import Record
from everview.language.relations import Relation, Semantics, View

__all__ = ["CHUNK", "FOLDER", "Export", "export", "stored_chunks", "stored_columns"]

FOLDER = "gate/exports"
CHUNK = 50_000
"""How many rows are in memory at once."""


@dataclass(frozen=True, slots=True)
class Export:
    """What a refresh is to take in."""

    arrivals: tuple[Arrival, ...]
    head: int
    """The commit of the gate up to which it goes."""
    commits: int
    """How many commits it is about."""
    arrived: int
    """The greatest number of the hub's own writes in it."""
    numbered: int
    """The greatest number that it has given to a write."""
    noted: dict[str, int]
    """Up to where of what was noted as gone it goes, relation by relation."""


def export(
    files: Files, gate: Gate, record: Record, on_rows: Callable[[int], None] | None = None, *, since: int
) -> Export:
    """Write out what changed in the gate after a commit, as writes that come after all those before."""
    files.remove(FOLDER)
    number = max(record.arrived, record.exported) + 1
    arrivals: list[Arrival] = []
    with gate.reading() as (connection, head, noted):
        for name, stored in gate.relations.items():
            if head > since or noted[name]:
                chunks = _chunks(connection, stored, since)
                arrivals += _Writer(files, stored, number).run(_counted(chunks, on_rows))
    arrived = max(record.arrived, gate.arrived)
    return Export(tuple(arrivals), head, head - max(since, 0), arrived, number + 1, noted)


def _counted(
    chunks: Iterator[tuple[pa.Table, Sequence[int]]], on_rows: Callable[[int], None] | None
) -> Iterator[tuple[pa.Table, Sequence[int]]]:
    for rows, often in chunks:
        yield rows, often
        if on_rows is not None:
            on_rows(rows.num_rows)


def _chunks(
    connection: sqlite3.Connection, stored: StoredRows, since: int
) -> Iterator[tuple[pa.Table, Sequence[int]]]:
    """Changed rows, and how often each is there."""
    schema = stored.relation.schema
    cursor = connection.execute(changed_sql(stored), (since,))
    while found := cursor.fetchmany(CHUNK):
        *cells, often = zip(*found, strict=True)
        arrays = [loaded_column(column, f.type) for column, f in zip(cells, schema, strict=True)]
        yield pa.Table.from_arrays(arrays, schema=arrow_schema(schema)), often


class _Writer:
    """Writes the changes of a relation as one write of what goes and one of what comes."""

    def __init__(self, files: Files, stored: StoredRows, number: int) -> None:
        self._files = files
        self._relation = stored.relation
        self._number = number
        self._rows = {False: 0, True: 0}
        self._parts: dict[bool, list[str]] = {False: [], True: []}
        self._place = f"{FOLDER}/{stored.table.name}"

    def run(self, chunks: Iterator[tuple[pa.Table, Sequence[int]]]) -> list[Arrival]:
        bag = self._relation.semantics is Semantics.BAG
        for rows, often in chunks:
            counts = np.asarray(often, dtype=np.int64)
            self._put(rows if bag else rows.filter(pa.array(counts == 0)), present=False)
            if bag:
                # Copies lie together: where one row has very many, they are in chunks of their own.
                places = np.repeat(np.arange(len(counts)), counts)
                for start in range(0, len(places), CHUNK):
                    self._put(rows.take(pa.array(places[start : start + CHUNK])), present=True)
            else:
                self._put(rows.filter(pa.array(counts > 0)), present=True)
        return [
            Arrival(
                self._number + present,
                self._relation.name,
                present,
                count,
                self._folder(present=present),
                clears=bag and not present,
                parts=tuple(self._parts[present]),
            )
            for present, count in self._rows.items()
            if count
        ]

    def _folder(self, *, present: bool) -> str:
        return f"{self._place}-{'come' if present else 'gone'}"

    def _put(self, rows: pa.Table, *, present: bool) -> None:
        if rows.num_rows:
            buffer = io.BytesIO()
            pq.write_table(rows, buffer)
            name = f"part-{len(self._parts[present])}.parquet"
            self._files.create(f"{self._folder(present=present)}/{name}", buffer.getvalue())
            self._parts[present].append(name)
            self._rows[present] += rows.num_rows


def stored_chunks(files: Files, arrival: Arrival, relation: Relation) -> Iterator[Columns]:
    """The rows of one of the hub's own writes, as SQLite is given them."""
    for path in parquet_files(files, arrival):
        with files.open(path) as opened, pq.ParquetFile(opened, page_checksum_verification=True) as file:
            for batch in file.iter_batches(CHUNK):
                yield stored_columns(pa.Table.from_batches([batch]), relation)


def stored_columns(rows: pa.Table, relation: Relation | View) -> Columns:
    """Columns of Arrow as SQLite is given them."""
    return [stored_column(column, f.type) for column, f in zip(rows.columns, relation.schema, strict=True)]
