"""Why, at a hub: what tracing asks, answered by the driver from few rows and by Spark from many."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from everview.algebra import provenance as algebra
from everview.engines.spark.relational import compile_plan
from everview.engines.spark.types import (
    NOTHING,
    arrow_rows,
    arrow_schema,
    arrow_table,
    column_names,
    from_arrow,
)
from everview.errors import LimitError, StoreError
from everview.hub.contents import contents
from everview.hub.files import Files
from everview.hub.jobs import job
from everview.hub.lookup import open_part, ranges
from everview.hub.memory import Memory
from everview.hub.narrowing import Narrowed, Narrowing
from everview.hub.record import Record
from everview.hub.searching import Request, search
from everview.hub.tables import Catalog
from everview.language.identity import tuple_id
from everview.language.plan import Distinct, Fixpoint, Plan, Scan
from everview.language.values import check_rows
from everview.planner.circuit.parts import Leaf
from everview.planner.rewrite import rewrite
from everview.planner.why.answer import Named, Provenance, answer
from everview.planner.why.evidence import Question
from everview.planner.why.tracing import Tracing

__all__ = ["Refreshed", "why"]

Row = tuple[Any, ...]

Origin = Callable[[str, Row], str]
"""The name of the site that wrote a row of a relation."""

SMALL = 50_000
"""A table of so many rows is read by the driver as it is."""

_GIVEN = "everview_given"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A refresh of a hub, and the most rows that its driver collects."""

    spark: SparkSession
    files: Files
    catalog: Catalog
    record: Record
    most: int


def why(state: Refreshed, origin: Origin, name: str, row: Mapping[str, Any] | Sequence[Any]) -> Provenance:
    """Why a row of a relation or view is there; 0 for one that is not. `origin` says who wrote a row."""
    program = state.catalog.program
    schema = program.schema(name)
    (checked,) = check_rows(name, [replace(field, nullable=True) for field in schema], [row])
    witnesses = _Witnesses(state, origin, name)
    tracing, scan = Tracing(witnesses), Scan(name, schema)
    element = tracing.why(scan, checked)
    return answer(program, element, witnesses.known.values(), tracing.proof(scan, checked))


@dataclass(slots=True)
class _Witnesses:
    """The evidence for a row of `name`."""

    state: Refreshed
    origin: Origin
    name: str
    known: dict[bytes, Named] = field(default_factory=dict)
    _collected: int = 0
    _recursive: dict[str, tuple[Scan, pa.Table]] = field(default_factory=dict)
    _narrowing: Narrowing = field(init=False)

    def __post_init__(self) -> None:
        state = self.state
        small = min(SMALL, state.most)
        self._narrowing = Narrowing(state.files, state.catalog, state.record, state.most, small)

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The plans of all views."""
        return self.state.catalog.plans

    def pairs(self, question: Question) -> list[tuple[Row, Row]]:
        """A question is one plan: the driver runs it if it has the rows, else it is one Spark job."""
        one = question.rows[0] if len(question.rows) == 1 else None
        if one is not None:
            asked, given = question.of_one(one), {}
        else:
            scan = question.given(_GIVEN)
            asked, given = question.of_all(scan), {_GIVEN: (scan, arrow_table(scan.schema, question.rows))}
        narrowed = self._narrowing.narrow(rewrite(Distinct(asked)), {**self._recursive, **given})
        rows = arrow_rows(
            self._by_spark(narrowed) if narrowed.elsewhere else _by_driver(narrowed), asked.schema
        )
        self._count(len(rows))
        if one is not None:
            return [(one, row) for row in rows]
        return [(row[: question.width], row[question.width :]) for row in rows]

    def recursive(self, group: Fixpoint) -> Mapping[str, Scan]:
        """The rows of a group, brought in by the driver; they count as collected, once."""
        state = self.state
        name = state.catalog.recursions[group.names, group.plans]
        recursion = state.catalog.circuit.operators[name].recursion
        if recursion is None:
            raise AssertionError(f"{name} is no recursion")
        if not state.record.levels:
            raise StoreError(
                f"the recursion of {', '.join(group.names)} was kept by an older Everview, in tables that "
                "this one does not read: refresh once with new rows, and ask again",
                path=state.files.uri(""),
            )
        scans = {}
        for place, (relation, own) in enumerate(zip(group.names, recursion.leaves, strict=False)):
            scan = scans[relation] = Scan(f"everview_{name}_{place}", own.schema)
            if scan.name not in self._recursive:
                self._recursive[scan.name] = scan, self._all(own)
        return scans

    def _all(self, own: Leaf) -> pa.Table:
        """The rows of a relation of a group, without their levels."""
        state, kept = self.state, own.kept
        runs = state.record.runs(kept.name)
        self._count(sum(run.rows for run in runs))
        parts = tuple(part for run in runs for part in run.parts)
        low, high = ranges(1)[0]
        request = Request(parts, state.catalog.layout(kept), None)
        found = search(request, low, high, open_part(state.files), None)
        if not own.schema:
            return pa.table({NOTHING: pa.nulls(0 if found is None else found.num_rows, pa.bool_())})
        if found is None:
            return arrow_schema(own.schema).empty_table()
        return found.select(column_names(len(own.schema)))

    def base(self, name: str, rows: Sequence[Row]) -> Mapping[Row, algebra.Provenance]:
        """Rows of relations stand for themselves."""
        relation = self.state.catalog.program.relations[name]
        ids = {row: tuple_id(relation, row) for row in rows}
        for row, id_ in ids.items():
            values = dict(zip(relation.columns, row, strict=True))
            self.known[id_] = Named(id_, name, values, self.origin(name, row))
        return {row: algebra.Provenance.of(id_) for row, id_ in ids.items()}

    def _by_spark(self, narrowed: Narrowed) -> pa.Table:
        with self._views(narrowed) as names:
            text = compile_plan(narrowed.plan, lambda scan: names[scan.name])
            left = self.state.most - self._collected
            with job(self.state.spark.sparkContext, f"asks {', '.join(narrowed.elsewhere)}"):
                return self.state.spark.sql(text).limit(left + 1).toArrow()

    @contextmanager
    def _views(self, narrowed: Narrowed) -> Iterator[Mapping[str, str]]:
        """Every table that the plan reads as a view of the session, by names that nobody else has."""
        state, prefix = self.state, f"everview_{uuid.uuid4().hex}"
        frames: dict[str, DataFrame] = {
            name: from_arrow(state.spark, scan.schema, table) for name, (scan, table) in narrowed.here.items()
        }
        for name in narrowed.elsewhere:
            frames[name] = contents(state.spark, state.files, state.catalog, state.record, name)
        names = {name: f"{prefix}_{place}" for place, name in enumerate(frames)}
        try:
            for name, frame in frames.items():
                frame.createOrReplaceTempView(names[name])
            yield names
        finally:
            for view in names.values():
                state.spark.catalog.dropTempView(view)

    def _count(self, rows: int) -> None:
        self._collected += rows
        if self._collected > self.state.most:
            raise LimitError(
                f"why this row of {self.name} is there takes more than {self.state.most} rows to say, the "
                "most that the driver of a hub collects: ask for a row that stands on fewer",
                limit=self.state.most,
            )


def _by_driver(narrowed: Narrowed) -> pa.Table:
    memory = Memory()
    try:
        for name, (scan, table) in narrowed.here.items():
            memory.put(name, scan.schema, table)
        memory.run("answer", narrowed.plan)
        return memory.table("answer")
    finally:
        memory.close()
