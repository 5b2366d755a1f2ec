"""Where a refresh is worked out: what a workshop does, and the one on the driver.

A workshop holds the tables of one refresh by name, runs plans over them, looks up kept rows and writes new
runs. On the driver the lookups are a Spark job and the rest is arithmetic on few rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from everview.engines.spark.hashing import Hashes, hash_columns
from everview.engines.spark.types import arrow_schema, column_names
from everview.hub.deepening import SPARE
from everview.hub.driver import Driver
from everview.hub.files import Files
from everview.hub.inbox import Arrival, read_arrivals
from everview.hub.lookup import collect
from everview.hub.record import Record
from everview.hub.runs import FOLDER, Layout, Part, Run, packed, sealed, spread
from everview.hub.searching import Request
from everview.hub.tables import Hashed
from everview.language.plan import Plan, Scan, Schema
from everview.planner.circuit import Lookup
from everview.planner.circuit.weighted import present, sum_up

__all__ = ["DriverWorkshop", "Found", "TooManyRowsError", "Wanted", "Workshop"]

Found = Any
"""What a lookup found: columns on the driver, a DataFrame on executors, None for nothing."""


class TooManyRowsError(Exception):
    """The driver cannot take what was found."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lookups in one table for one reader, `known` by both their names."""

    known: tuple[str, str]
    table: str
    layout: Layout
    schema: Schema
    lookups: Sequence[Lookup]
    spared: bool = False
    """Whether fewer ranked rows than may be needed are enough for now (see `deepening`)."""


class Workshop(Protocol):
    """The tables of a refresh, and what is done with them."""

    jobs: int

    def empty(self, name: str, schema: Schema) -> None:
        """A table without rows."""
        ...

    def run(self, name: str, plan: Plan) -> None:
        """A table of a plan's rows."""
        ...

    def is_empty(self, name: str) -> bool:
        """Whether a table surely has no rows."""
        ...

    def has_rows(self, plan: Plan) -> bool:
        """Whether a plan has any rows."""
        ...

    def look_up(self, record: Record, wanted: Sequence[Wanted]) -> Mapping[tuple[str, str], Found]:
        """Find kept rows; TooManyRowsError when they are too many for this workshop."""
        ...

    def put_found(self, table: Scan, found: Found) -> None:
        """A table of what was found."""
        ...

    def write(self, layout: Layout, hashed: Hashed, change: Plan, rows: int) -> Run | None:
        """A new run of what a change adds up to, by about so many `rows`; None when that is nothing."""
        ...

    def alias(self, name: str, table: str) -> None:
        """Another name for a table."""
        ...

    def weights(self, names: Sequence[str]) -> list[tuple[int, int]]:
        """How many rows of each delta come, and how many go."""
        ...

    def finish(self) -> None:
        """Put the runs that were written where they last; before that, none counts."""
        ...

    def placed(self, run: Run) -> Run:
        """A run that was written, once all is finished."""
        ...


class DriverWorkshop:
    """The workshop on the driver."""

    def __init__(
        self,
        spark: SparkSession,
        files: Files,
        tasks: int,
        most: int,
    ) -> None:
        self._spark = spark
        self._files = files
        self._tasks = tasks
        self._most = most
        self._driver = Driver()
        self._path = f"{FOLDER}/{uuid.uuid4().hex}.arrow"
        self._pending: list[pa.Table] = []
        self._offsets: list[Part] = []
        self.jobs = 0

    def empty(self, name: str, schema: Schema) -> None:
        """A table without rows."""
        self._driver.put(name, schema, arrow_schema(schema).empty_table())

    def arrive(self, table: Scan, arrivals: Sequence[Arrival]) -> None:
        """What has arrived, read by the driver: it is little."""
        self._driver.put(table.name, table.schema, read_arrivals(self._files, table.schema, arrivals))

    def run(self, name: str, plan: Plan) -> None:
        """A table of a plan's rows."""
        self._driver.run(name, plan)

    def is_empty(self, name: str) -> bool:
        """Whether a table has no rows."""
        return self._driver.count(name) == 0

    def has_rows(self, plan: Plan) -> bool:
        """Whether a plan has any rows."""
        self._driver.run("@asked", plan)
        return self._driver.count("@asked") > 0

    def look_up(self, record: Record, wanted: Sequence[Wanted]) -> Mapping[tuple[str, str], Found]:
        """Find kept rows in one Spark job."""
        asked: list[tuple[tuple[str, str], Request]] = []
        found: dict[tuple[str, str], Found] = {}
        for one in wanted:
            request = self._request(record, one)
            found[one.known] = None
            if request.parts and (request.hashes is None or len(request.hashes)):
                asked.append((one.known, request))
        if asked:
            self.jobs += 1
            requests = [request for _, request in asked]
            tables = collect(self._spark, self._files.uri(""), requests, self._tasks, self._most)
            if tables is None:
                raise TooManyRowsError
            found.update({known: table for (known, _), table in zip(asked, tables, strict=True)})
        return found

    def _request(self, record: Record, wanted: Wanted) -> Request:
        parts = tuple(part for run in record.runs(wanted.table) for part in run.parts)
        if any(lookup.keys is None for lookup in wanted.lookups):
            return Request(parts, wanted.layout, None)
        hashes = np.concatenate([self._hashes(lookup) for lookup in wanted.lookups])
        take = max(lookup.take or 0 for lookup in wanted.lookups)
        if all(lookup.take is None for lookup in wanted.lookups):
            return Request(parts, wanted.layout, np.unique(hashes))
        last = any(lookup.last for lookup in wanted.lookups)
        first = any(not lookup.last for lookup in wanted.lookups)
        unique, counts = np.unique(hashes, return_counts=True)
        if not wanted.lookups[0].kept.keys:
            # The rows of the only key are spread over all of these.
            needed = np.full(256, len(hashes) + take)
            unique = np.arange(-128, 128, dtype=np.int64) << np.int64(56)
            return Request(parts, wanted.layout, unique if len(hashes) else hashes, needed, first, last)
        spared = np.minimum(counts, SPARE) if wanted.spared else counts
        return Request(parts, wanted.layout, unique, spared + take, first, last)

    def _hashes(self, lookup: Lookup) -> Hashes:
        if lookup.keys is None:
            raise ValueError("all rows are asked for by no hash")
        self._driver.run("@keys", lookup.keys)
        table = self._driver.table("@keys")
        fields = [lookup.kept.schema[place] for place in lookup.kept.keys]
        return hash_columns(table.columns[: len(fields)], fields, table.num_rows)

    def put_found(self, table: Scan, found: Found) -> None:
        """A table of what was found."""
        names = column_names(len(table.schema))
        rows = found.select(names) if found is not None else arrow_schema(table.schema).empty_table()
        self._driver.put(table.name, table.schema, rows)

    def write(self, layout: Layout, hashed: Hashed, change: Plan, rows: int) -> Run | None:  # noqa: ARG002
        """Sort a run; all runs of a refresh go into one file."""
        if isinstance(change, Scan):
            found = self._driver.table(change.name)
        else:
            made = change if layout.latest else present(sum_up(change, layout.width), layout.width)
            self._driver.run("@made", made)
            found = self._driver.table("@made")
        count = found.num_rows
        if not count:
            return None
        fields = [change.schema[place] for place in hashed.columns]
        hashes = hash_columns([found.column(place) for place in hashed.columns], fields, count)
        self._pending.append(sealed(found, spread(hashes) if hashed.spread else hashes, layout))
        return Run(count, (Part(self._path, len(self._pending) - 1, 0, count, 0, 0),))

    def alias(self, name: str, table: str) -> None:
        """Another name for a table."""
        self._driver.put(name, self._driver.schema(table), self._driver.table(table))

    def weights(self, names: Sequence[str]) -> list[tuple[int, int]]:
        """How many rows of each delta come, and how many go."""
        return [self._weights(name) for name in names]

    def _weights(self, name: str) -> tuple[int, int]:
        weights = self._driver.table(name).columns[-1]
        zero = pa.scalar(0, pa.int64())
        more = pc.sum(pc.max_element_wise(weights, zero)).as_py() or 0
        less = pc.sum(pc.min_element_wise(weights, zero)).as_py() or 0
        return more, -less

    def tables(self) -> Iterator[tuple[str, Schema, pa.Table]]:
        """All tables, by name."""
        for name in self._driver.names():
            yield name, self._driver.schema(name), self._driver.table(name)

    def finish(self) -> None:
        """Write the file."""
        content, parts = packed(self._path, self._pending)
        if parts:
            self._files.create(self._path, content)
        self._offsets = parts
        self._driver.close()

    def placed(self, run: Run) -> Run:
        """A run with the places that its parts got in the file."""
        parts = tuple(self._offsets[p.offset] if p.path == self._path else p for p in run.parts)
        return Run(run.rows, parts)
