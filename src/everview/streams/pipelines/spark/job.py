"""A job: rows for the stages of some level, through all levels below, and what the driver is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from everview.hub.files import Files
from everview.hub.jobs import job as naming
from everview.streams.pipelines.description import SetStage
from everview.streams.pipelines.encoding import decode
from everview.streams.pipelines.functions import Field
from everview.streams.pipelines.spark.json_files import json_rows, packed_rows
from everview.streams.pipelines.spark.native import native_contribution, native_counts, part_sql, quoted
from everview.streams.pipelines.spark.sets import HASH
from everview.streams.pipelines.spark.tasks import COMMIT, SLOT, WEIGHT, level_task, set_task, source_task
from everview.streams.pipelines.spark.work import (
    CHANGES,
    CONTRIBUTION,
    ELEMENTS,
    FILL,
    HOLLOW,
    PENDING,
    RANK,
    RANKING,
    REFILL,
    ROWS,
    RUNS,
    SCHEMA,
    WAITING,
    Row,
    Work,
    as_arrow,
    rows_of,
)

NEEDED = ("numpy", "pyarrow", "xxhash", "msgspec")
"""The modules that a task imports beside PySpark, this package and what comes with Python; one that sketches
also imports datasketches."""

SMALL = 4_000_000
"""How many bytes of contributions the driver merges by itself; more are merged by tasks."""

FOR_TASKS = (ELEMENTS, ROWS, HOLLOW, FILL, RANK)


@dataclass(slots=True)
class Outcome:
    """What a job made, stage by stage."""

    runs: dict[str, dict[int, list[Any]]] = field(default_factory=dict)
    rankings: dict[str, dict[int, list[Any]]] = field(default_factory=dict)
    contributions: dict[str, list[Any]] = field(default_factory=dict)
    pending: list[tuple[str, int, bytes]] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)
    refill: set[str] = field(default_factory=set)
    changes: dict[str, list[tuple[Any, int]]] = field(default_factory=dict)
    is_large: bool = False
    """Whether there was more between two levels than the driver takes upon itself."""

    def take(self, row: Row) -> None:
        """Take in one row for the driver."""
        _, kind, stage, part, body = row
        if kind == RUNS:
            self.runs.setdefault(stage, {})[part] = [tuple(run) for run in decode(body)]
        elif kind == RANKING:
            self.rankings.setdefault(stage, {})[part] = decode(body)
        elif kind == CONTRIBUTION:
            self.contributions.setdefault(stage, []).append(decode(body))
            self.waiting[stage] = self.waiting.get(stage, 0) + part
        elif kind == PENDING:
            self.pending.append((stage, part, body))
        elif kind == WAITING:
            self.waiting[stage] = self.waiting.get(stage, 0) + part
        elif kind == REFILL:
            self.refill.add(stage)
        elif kind == CHANGES:
            self.changes.setdefault(stage, []).extend(zip(*decode(body), strict=True))


def take_in(work: Work, source: str, frame: DataFrame) -> Outcome:
    """Take a source's rows in; as much as can be by Spark's own functions."""
    fed = work.fed_by(source)
    if len(fed) == 1 and not {WEIGHT, COMMIT} & {*frame.columns}:
        (stage,) = fed
        few = native_contribution(stage, frame)
        if few is not None:
            return _outcome(few)
        rows = native_counts(work, stage, frame)
        if rows is not None:
            return _through(work, rows, 1)
        if isinstance(stage, SetStage) and work.state.forms[stage.name] != ELEMENTS:
            placed = _placed(stage, frame)
            return _through(work, placed.mapInArrow(set_task(work, stage), SCHEMA), 2)
    return _through(work, frame.mapInArrow(source_task(work, source), SCHEMA), 1)


def take_in_files(
    work: Work,
    source: str,
    spark: SparkSession,
    files: Files,
    chosen: list[tuple[str, int]],
    columns: StructType,
) -> Outcome:
    """Take the rows of files in; where one set keeps them, from task to task in whole pieces."""
    fed = work.fed_by(source)
    if len(fed) == 1 and isinstance(fed[0], SetStage) and work.state.forms[fed[0].name] != ELEMENTS:
        rows = packed_rows(work, fed[0], spark, files, chosen, columns)
        if rows is not None:
            return _through(work, _at_tasks(work, rows, 1), 2)
    return take_in(work, source, json_rows(spark, files, chosen, columns))


def run_rows(work: Work, spark: SparkSession, rows: Iterable[Row], level: int) -> Outcome:
    """Give rows to the tasks of a level, and on from there."""
    listed = list(rows)
    if not listed:
        return Outcome()
    return _onwards(work, spark, listed, level)


def form_of(work: Work, stage: SetStage, columns: StructType) -> str:
    """How a set would keep rows of these columns: as they are, by column, or as elements."""
    types = {column.name: column.dataType for column in columns}
    alone = work.pipeline.fed_by(stage.input.feeder.name) == (stage,)
    if not alone or stage.input.steps or not isinstance(stage.key, Field) or {WEIGHT, COMMIT} & {*types}:
        return ELEMENTS
    found = part_sql(quoted(stage.key.name), types.get(stage.key.name), stage.partitioning)
    return ELEMENTS if found is None or {HASH, SLOT} & {*types} else columns.simpleString()


def _placed(stage: SetStage, frame: DataFrame) -> DataFrame:
    """A source's rows with their partition of a set and the hash of their key, each at its task."""
    assert isinstance(stage.key, Field)
    kind = {column.name: column.dataType for column in frame.schema}[stage.key.name]
    key = quoted(stage.key.name)
    part = part_sql(key, kind, stage.partitioning)
    # A whole number is its own hash, and needs no more than that to be found.
    found = key if isinstance(kind, LongType) else f"xxhash64({key})"
    checked = f"coalesce({key}, raise_error('an element of the set {stage.name} has no key: NULL'))"
    columns = [f"{checked} AS {key}" if name == stage.key.name else quoted(name) for name in frame.columns]
    placed = frame.selectExpr(f"{part} AS {SLOT}", f"cast({found} AS BIGINT) AS {HASH}", *columns)
    return placed.repartitionById(stage.partitioning.count, SLOT)


def _through(work: Work, frame: DataFrame, level: int) -> Outcome:
    """Collect what a level is given; the driver does the rest while that is little, else Spark does."""
    if work.large:
        for number in range(level, work.levels + 1):
            frame = _at_tasks(work, frame, number)
        return _outcome([], _collected(frame))
    return _onwards(work, frame.sparkSession, _collected(frame), level)


def _onwards(work: Work, spark: SparkSession, rows: list[Row], level: int) -> Outcome:
    told: list[Row] = []
    size = 0
    for number in range(level, work.levels + 1):
        todo = [row for row in rows if row[1] in FOR_TASKS]
        told += [row for row in rows if row[1] not in FOR_TASKS]
        more = sum(len(row[4]) for row in todo)
        size = max(size, more)
        if not todo:
            rows = []
        elif more <= SMALL:
            rows = [row for batch in level_task(work)(as_arrow(todo)) for row in rows_of([batch])]
        else:
            rows = _collected(_at_tasks(work, spark.createDataFrame(todo, SCHEMA), number))
    return _outcome(told, rows, is_large=size > SMALL)


def _at_tasks(work: Work, frame: DataFrame, level: int) -> DataFrame:
    tasks = max(1, len(work.slots(level)))
    return frame.repartitionById(tasks, "slot").mapInArrow(level_task(work), SCHEMA)


def _collected(frame: DataFrame) -> list[Row]:
    with naming(frame.sparkSession.sparkContext, "pipeline: a batch", NEEDED):
        rows = frame.collect()
    return [(r.slot, r.kind, r.stage, r.part, bytes(r.body)) for r in rows]


def _outcome(*rows: Iterable[Row], is_large: bool = False) -> Outcome:
    made = Outcome(is_large=is_large)
    for some in rows:
        for row in some:
            made.take(row)
    return made
