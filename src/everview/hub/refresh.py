"""One refresh: what has arrived goes into the relations, and their deltas through all views.

Each relation that was written and each view that reads one that changed is one Spark job, which writes the
table's next version; its counts are taken on the way. Views are in the order of the program, so that each
finds the deltas of those below it. A version that turns out equal to the last one is dropped, and what
reads it is not touched. Every DataFrame is made anew, with its schema given.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)

from everview.engines.spark.relational import compile_plan
from everview.engines.spark.types import spark_schema
from everview.hub.files import Files
from everview.hub.inbox import Arrival
from everview.hub.record import Record
from everview.hub.tables import Table, merged_relation, merged_view, stored_schema
from everview.language.expressions import Column, Literal
from everview.language.plan import Plan, Project, Scan, rewrite
from everview.language.program import Program
from everview.language.types import BIGINT
from everview.planner import rewrite as planner
from everview.planner.delta import State, delta_plan, state_name, state_of

__all__ = ["Change", "RefreshReport", "Refreshing", "change_text"]


@dataclass(frozen=True, slots=True)
class Change:
    """How many rows of a table appeared and disappeared, copies counted."""

    appeared: int
    disappeared: int


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh did: its number, the writes it took in, and the tables that changed."""

    refresh: int
    arrivals: int
    changes: Mapping[str, Change] = field(default_factory=dict)
    jobs: int = 0


@functools.lru_cache(maxsize=1024)
def planned(plan: Plan) -> Plan:
    """The plan that is run: rewritten as for every engine, subqueries turned into joins."""
    return planner.rewrite(plan)


def change_text(plan: Plan, touched: frozenset[str] | None, table: Callable[[Scan], str]) -> str | None:
    """The SQL of a view's change, its weight last; all its rows when `touched` is None, None when nothing."""
    plan = planned(plan)
    if touched is not None:
        delta = delta_plan(plan, touched)
        return None if delta is None else compile_plan(delta, table)

    def current(node: Plan) -> Plan:
        return Scan(state_name(node.name, State.NEW), node.schema) if isinstance(node, Scan) else node

    columns = tuple(Column(i, column.type, column.name) for i, column in enumerate(plan.schema))
    names = tuple(column.name for column in plan.schema)
    everything = Project(rewrite(plan, current), (*columns, Literal(1, BIGINT)), (*names, "weight"))
    return compile_plan(everything, table)


class Refreshing:
    """A refresh under way; `record` becomes the next one."""

    def __init__(self, spark: SparkSession, files: Files, program: Program, record: Record) -> None:
        self._spark = spark
        self._files = files
        self._program = program
        self._before = record
        self.record = replace(record, refresh=record.refresh + 1, tables=dict(record.tables))
        self._prefix = f"everview_{uuid.uuid4().hex}"
        self._views: dict[str, str] = {}
        self.changes: dict[str, Change] = {}
        self.jobs = 0

    def run(self, arrivals: list[Arrival]) -> RefreshReport:
        """Write the next version of every table that changes, and say what did."""
        with self._temporary():
            for name in self._program.relations:
                mine = [arrival for arrival in arrivals if arrival.relation == name]
                if mine:
                    self._relation(name, mine)
            for name in self._program.views:
                self._view(name)
        taken = max([self._before.arrived, *(arrival.number for arrival in arrivals)])
        self.record = replace(self.record, arrived=taken)
        return RefreshReport(self.record.refresh, len(arrivals), self.changes, self.jobs)

    @contextmanager
    def _temporary(self) -> Iterator[None]:
        try:
            yield
        finally:
            for name in self._views.values():
                self._spark.catalog.dropTempView(name)

    def _register(self, key: str, frame: DataFrame) -> str:
        name = self._views.setdefault(key, f"{self._prefix}_{len(self._views)}")
        frame.createOrReplaceTempView(name)
        return name

    def _stored(self, name: str) -> str:
        """The temporary view over the table's version in `record`."""
        folder = self.record.tables.get(name)
        key = f"{name}@{folder}"
        if key in self._views:
            return self._views[key]
        schema = stored_schema(self._program.schema(name))
        if folder is None:
            return self._register(key, self._spark.createDataFrame([], schema))
        return self._register(key, self._spark.read.schema(schema).parquet(self._files.uri(folder)))

    def _from_item(self, scan: Scan) -> str:
        name, state = state_of(scan.name)
        table = Table(
            self._stored(name),
            self._program.schema(name),
            is_relation=name in self._program.relations,
            touched=name in self.changes,
        )
        return table.from_item(state)

    def _relation(self, name: str, arrivals: list[Arrival]) -> None:
        schema = self._program.schema(name)
        parts: list[DataFrame] = []
        for arrival in arrivals:
            read = self._spark.read.schema(spark_schema(schema)).parquet(self._files.uri(arrival.folder))
            marks = (
                F.lit(arrival.present).alias("present"),
                F.lit(arrival.number).cast("bigint").alias("number"),
            )
            parts.append(read.select("*", *marks))
        united = parts[0]
        for part in parts[1:]:
            united = united.unionAll(part)
        arrived = self._register(f"{name} arrived", united)
        self._write(name, merged_relation(schema, self._stored(name), arrived), "now % 2 - was % 2")

    def _view(self, name: str) -> None:
        view = self._program.views[name]
        touched = frozenset(self.changes) if name in self._before.tables else None
        change = change_text(view.plan, touched, self._from_item)
        if change is not None:
            self._write(name, merged_view(view.schema, self._stored(name), change), "now - was")

    def _write(self, name: str, text: str, weight: str) -> None:
        folder = f"tables/{quote(name, safe='')}/{self.record.refresh:012}-{uuid.uuid4().hex[:8]}"
        seen = Observation()
        up, down = F.expr(f"greatest({weight}, 0L)"), F.expr(f"greatest(-({weight}), 0L)")
        sums = F.sum(up).alias("up"), F.sum(down).alias("down")
        self._spark.sql(text).observe(seen, *sums).write.parquet(self._files.uri(folder))
        self.jobs += 1
        counts = seen.get
        change = Change(int(counts["up"] or 0), int(counts["down"] or 0))
        if change == Change(0, 0) and name in self._before.tables:
            self._files.remove(folder)
            return
        self.record.tables[name] = folder
        self.changes[name] = change
