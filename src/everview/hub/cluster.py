"""The workshop of many rows: tables are DataFrames, and executors do everything.

What is computed is kept where it was made, because several plans read it, and without the plan that made
it: one that held all those before it would take Spark longer to look at than to run. A lookup brings the
hashes of its keys to as many tasks as there are, each of which searches the runs by itself. A run is written
in parts, each a range of hashes and one file, sorted by the task that has it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)
from pyspark.sql import types as st

from everview.engines.spark.hashing import Hashes, hash_columns, hash_text
from everview.engines.spark.relational import compile_plan
from everview.engines.spark.types import arrow_schema, column_names, from_arrow, spark_schema
from everview.hub.compact import PLACE_NAMES, PLACES, write_part, written_run
from everview.hub.deepening import SPARE
from everview.hub.driver import Driver
from everview.hub.files import Files
from everview.hub.inbox import Arrival, parquet_files
from everview.hub.lookup import open_part, scanning
from everview.hub.record import Record
from everview.hub.relations import LatticeTable
from everview.hub.runs import HASH, Layout, Part, Run, merged, sealed
from everview.hub.searching import Request, search
from everview.hub.tables import Hashed
from everview.hub.workshop import DriverWorkshop, Found, Wanted
from everview.language.plan import Plan, Scan, Schema
from everview.planner.circuit.parts import table_of, tables_of

__all__ = ["ClusterWorkshop"]

KEYS = 200_000
"""How many keys a task searches at once: it holds what they find in memory."""

_CHECKED = {"parquet.page.verify-checksum.enabled": "true"}
"""A damaged page is an error; unasked, Spark takes from it what it can."""

_ALL = -(2**63), 2**63 - 1

_PLACE_TYPES = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.int64())
_PLACE_FIELDS = [
    st.StructField(name, st.StringType() if name == "path" else st.LongType()) for name in PLACE_NAMES
]

TASK_ROWS = 1_000_000
"""About how many rows a task gets: it holds them in memory."""

Batches = Iterator[pa.RecordBatch]


class ClusterWorkshop:
    """The workshop on the executors."""

    def __init__(
        self, spark: SparkSession, files: Files, tasks: int, small: DriverWorkshop | None = None
    ) -> None:
        self._spark = spark
        self._small = small
        self._files = files
        self._tasks = tasks
        self._prefix = f"everview_{uuid.uuid4().hex}"
        self._frames: dict[str, tuple[str, Schema]] = {}
        self._empty: set[str] = set()
        self._views: list[str] = []
        self.jobs = small.jobs if small is not None else 0
        for name, schema, table in small.tables() if small is not None else ():
            if table.num_rows:
                self.put(name, schema, from_arrow(spark, schema, table))
            else:
                self.empty(name, schema)

    def put(self, name: str, schema: Schema, frame: DataFrame) -> None:
        """A table that is a DataFrame."""
        view = f"{self._prefix}_{len(self._views)}"
        frame.createOrReplaceTempView(view)
        self._views.append(view)
        self._frames[name] = view, schema
        self._empty.discard(name)

    def empty(self, name: str, schema: Schema) -> None:
        """A table without rows."""
        self.put(name, schema, self._spark.createDataFrame([], spark_schema(schema)))
        self._empty.add(name)

    def _arrived(self, table: Scan, arrivals: Sequence[Arrival]) -> DataFrame:
        """What has arrived, read from its files."""
        *fields, _ = table.schema
        parts = []
        for arrival in arrivals:
            paths = [self._files.uri(path) for path in parquet_files(self._files, arrival.folder)]
            read = self._spark.read.schema(spark_schema(fields)).options(**_CHECKED).parquet(*paths)
            mark = F.lit(2 * arrival.number + arrival.present).cast("bigint").alias(f"c{len(fields)}")
            parts.append(read.select("*", mark))
        united = parts[0]
        for part in parts[1:]:
            united = united.unionAll(part)
        return united

    def merge(self, record: Record, table: LatticeTable, arrivals: Sequence[Arrival]) -> Run | None:
        """Join what has come with what is stored, range by range, each by one task that also writes it."""
        arrived = self._arrived(table.arrived, arrivals)
        width = len(table.relation.schema)
        tasks = self._tasks_for(sum(arrival.rows for arrival in arrivals))
        text = hash_text([f"c{place}" for place in table.key])
        hashed = arrived.selectExpr(f"{text} AS {HASH}", *arrived.columns)
        merging = _merging(self._files.uri(""), table, record)
        schema = st.StructType([*spark_schema(table.change().schema).fields, *_PLACE_FIELDS])
        joined = _by_range(hashed, tasks).mapInArrow(merging, schema).localCheckpoint(eager=False)
        self.jobs += 1
        places = joined.where("path IS NOT NULL").select(*PLACE_NAMES).toArrow()
        rows = joined.where("path IS NULL").select(*column_names(width + 1))
        self.put(f"{table.relation.name}@delta", table.change().schema, rows)
        return written_run(places)

    def _tasks_for(self, rows: int) -> int:
        return max(self._tasks, -(-rows // TASK_ROWS))

    def run(self, name: str, plan: Plan) -> None:
        """A table of a plan's rows; computed when it is first read, and kept for the next reader."""
        if all(table in self._empty for table in tables_of(plan)):
            self.empty(name, plan.schema)
            return
        self.put(name, plan.schema, self._sql(plan).localCheckpoint(eager=False))

    def _sql(self, plan: Plan) -> DataFrame:
        return self._spark.sql(compile_plan(plan, self._from_item))

    def _from_item(self, scan: Scan) -> str:
        table, bag = table_of(scan.name)
        view, schema = self._frames[table]
        if not bag:
            return view
        *shown, often = column_names(len(schema))
        repeated = f"SELECT *, explode(sequence(1L, {often})) AS copy FROM {view} WHERE {often} > 0"
        return f"(SELECT {', '.join(shown) or 'true AS nothing'} FROM ({repeated}))"

    def is_empty(self, name: str) -> bool:
        """Whether it is known to have no rows; to find out would be a job."""
        return name in self._empty

    def has_rows(self, plan: Plan) -> bool:
        """One job that stops at the first row."""
        self.jobs += 1
        return bool(self._sql(plan).take(1))

    def look_up(self, record: Record, wanted: Sequence[Wanted]) -> Mapping[tuple[str, str], Found]:
        """DataFrames that search when they are read."""
        return {one.known: self._search(record, one) for one in wanted}

    def _search(self, record: Record, wanted: Wanted) -> Found:
        parts = tuple(part for run in record.runs(wanted.table) for part in run.parts)
        if not parts:
            return None
        schema = spark_schema(wanted.schema)
        uri = self._files.uri("")
        if any(lookup.keys is None for lookup in wanted.lookups):
            request = Request(parts, wanted.layout, None)
            tasks = self._spark.range(0, self._tasks, 1, self._tasks)
            return tasks.mapInArrow(scanning(uri, request, self._tasks, len(schema)), schema)
        asked = self._asked(wanted)
        first = any(not lookup.last for lookup in wanted.lookups)
        last = any(lookup.last for lookup in wanted.lookups)
        ranked = any(lookup.take is not None for lookup in wanted.lookups)
        searching = _searching(
            uri, parts, wanted.layout, len(schema), first=first and ranked, last=last and ranked
        )
        return asked.mapInArrow(searching, schema)

    def _asked(self, wanted: Wanted) -> DataFrame:
        """Each hash once, and of how many rows the ranked ones are needed."""
        hashes: list[DataFrame] = []
        take = max(lookup.take or 0 for lookup in wanted.lookups)
        for lookup in wanted.lookups:
            if lookup.keys is not None:
                text = hash_text(column_names(len(lookup.keys.schema)))
                hashes.append(self._sql(lookup.keys).selectExpr(f"{text} AS {HASH}"))
        united = hashes[0]
        for more in hashes[1:]:
            united = united.unionAll(more)
        rows = F.count(F.lit(1))
        spared = F.least(rows, F.lit(SPARE)) if wanted.spared else rows
        counted = united.groupBy(HASH).agg((spared + F.lit(take)).cast("bigint").alias("needed"))
        if not wanted.lookups[0].kept.keys:
            # The rows of the only key are spread over all of these.
            spread = self._spark.range(-128, 128, 1, self._tasks).selectExpr(f"shiftleft(id, 56) AS {HASH}")
            counted = spread.crossJoin(F.broadcast(counted.select("needed")))
        return counted.repartition(self._tasks, HASH)

    def put_found(self, table: Scan, found: Found) -> None:
        """What was found, searched for once."""
        if found is None:
            self.empty(table.name, table.schema)
            return
        if isinstance(found, pa.Table):
            found = from_arrow(self._spark, table.schema, found.select(column_names(len(table.schema))))
        self.put(table.name, table.schema, found.localCheckpoint(eager=False))

    def write(self, layout: Layout, hashed: Hashed, change: Plan, rows: int) -> Run | None:
        """Sort and write, range by range; rows that are the same meet there, and are added up."""
        if all(table in self._empty for table in tables_of(change)):
            return None
        text = hash_text([f"c{place}" for place in hashed.columns])
        if hashed.spread:
            text = f"shiftleft(shiftright({text}, 56), 56)"
        frame = self._sql(change)
        frame = frame.selectExpr(f"{text} AS {HASH}", *column_names(len(change.schema)))
        self.jobs += 1
        writing = _writing(self._files.uri(""), layout, change.schema)
        return written_run(_by_range(frame, self._tasks_for(rows)).mapInArrow(writing, PLACES).toArrow())

    def alias(self, name: str, table: str) -> None:
        """Another name for a DataFrame."""
        self._frames[name] = self._frames[table]
        if table in self._empty:
            self._empty.add(name)

    def weights(self, names: Sequence[str]) -> list[tuple[int, int]]:
        """All sums in one job."""
        texts = []
        for number, name in enumerate(names):
            if name not in self._empty:
                view, schema = self._frames[name]
                weight = f"c{len(schema) - 1}"
                sums = f"sum(greatest({weight}, 0L)) AS more, sum(least({weight}, 0L)) AS less"
                texts.append(f"SELECT {number} AS number, {sums} FROM {view}")
        found = [(0, 0)] * len(names)
        if texts:
            self.jobs += 1
            for row in self._spark.sql(" UNION ALL ".join(texts)).collect():
                found[row.number] = int(row.more or 0), -int(row.less or 0)
        return found

    def finish(self) -> None:
        """Let go of the tables, and finish what was begun on the driver."""
        if self._small is not None:
            self._small.finish()
        for view in self._views:
            self._spark.catalog.dropTempView(view)

    def placed(self, run: Run) -> Run:
        """It lies where it was written, unless that was the driver."""
        return self._small.placed(run) if self._small is not None else run


def _by_range(frame: DataFrame, tasks: int) -> DataFrame:
    """Ranges of equal width, because hashes are spread evenly; each goes to one task."""
    number = f"CAST((shiftright({HASH}, 48) + 32768) * {tasks} DIV 65536 AS INT)"
    return frame.repartitionById(tasks, F.expr(number))


def _searching(
    uri: str, parts: tuple[Part, ...], layout: Layout, width: int, *, first: bool, last: bool
) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        opened = open_part(uri)
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        hashes = np.concatenate([batch.column(0).to_numpy() for batch in given])
        needed = np.concatenate([batch.column(1).to_numpy() for batch in given])
        order = np.argsort(hashes)
        for start in range(0, len(order), KEYS):
            some = order[start : start + KEYS]
            ranked = needed[some] if first or last else None
            request = Request(parts, layout, hashes[some], ranked, first, last)
            table = search(request, *_ALL, opened, None)
            if table is not None:
                yield from table.select(column_names(width)).to_batches()

    return run


def _writing(uri: str, layout: Layout, schema: Schema) -> Callable[[Batches], Batches]:
    wanted = arrow_schema(schema)

    def run(batches: Batches) -> Batches:
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        table = pa.Table.from_batches(given)
        hashes: Hashes = table.column(HASH).to_numpy()
        made = merged([sealed(table.drop_columns([HASH]).cast(wanted), hashes, layout)], layout)
        if made.num_rows:
            yield write_part(uri, made)

    return run


def _merging(uri: str, table: LatticeTable, record: Record) -> Callable[[Batches], Batches]:
    parts = tuple(part for run in record.runs(table.name) for part in run.parts)
    version = record.refresh + 1
    wanted = arrow_schema(table.arrived.schema)
    shown = arrow_schema(table.change().schema)

    def run(batches: Batches) -> Batches:
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        come = pa.Table.from_batches(given)
        hashes: Hashes = come.column(HASH).to_numpy()
        request = Request(parts, table.layout, np.unique(hashes))
        stored = search(request, *_ALL, open_part(uri), None)
        driver = Driver()
        driver.put(table.arrived.name, table.arrived.schema, come.drop_columns([HASH]).cast(wanted))
        names = column_names(len(table.schema))
        empty = arrow_schema(table.schema).empty_table()
        driver.put(table.found.name, table.schema, empty if stored is None else stored.select(names))
        for name, plan in table.steps():
            driver.run(name, plan)
        driver.run("@grown", table.growth(version))
        driver.run("@changed", table.change())
        grown = driver.table("@grown")
        if grown.num_rows:
            fields = [table.schema[place] for place in table.key]
            keys = hash_columns([grown.column(place) for place in table.key], fields, grown.num_rows)
            yield from _with_place(shown.empty_table(), write_part(uri, sealed(grown, keys, table.layout)))
        changed = driver.table("@changed")
        yield from _with_place(changed, None)
        driver.close()

    return run


def _with_place(rows: pa.Table, place: pa.RecordBatch | None) -> Batches:
    """Rows of a change, or the place of a part that was written, in the columns of both."""
    names = [*rows.column_names, *PLACE_NAMES]
    if place is not None:
        nothing = [pa.nulls(1, field.type) for field in rows.schema]
        yield pa.RecordBatch.from_arrays([*nothing, *place.columns], names=names)
        return
    for batch in rows.to_batches():
        nothing = [pa.nulls(batch.num_rows, kind) for kind in _PLACE_TYPES]
        yield pa.RecordBatch.from_arrays([*batch.columns, *nothing], names=names)
