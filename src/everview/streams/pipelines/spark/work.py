"""What the tasks of a job know, and the rows that go between them.

A stage that has partitions has a task for each. Its level is how many such stages lie above it, so what a
level makes is for the next one: one shuffle between two levels, and all of a batch is one Spark job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from everview.hub.files import Files
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.description import AggregateStage, MapStage, SetStage, Source, Stage, TopStage
from everview.streams.pipelines.encoding import encode
from everview.streams.pipelines.functions import called
from everview.streams.pipelines.hollow import (
    NotInvertibleError,
    aggregate_of,
    counts_by_part,
    map_of,
    through,
)
from everview.streams.pipelines.keys import store_key
from everview.streams.pipelines.pipeline import Pipeline
from everview.streams.pipelines.spark.maps import packed, packed_counts
from everview.streams.pipelines.spark.record import State
from everview.streams.pipelines.triggers import OnNewData

SCHEMA = StructType(
    [
        StructField("slot", IntegerType()),
        StructField("kind", StringType()),
        StructField("stage", StringType()),
        StructField("part", IntegerType()),
        StructField("body", BinaryType()),
    ]
)
_ARROW = pa.schema(
    [
        ("slot", pa.int32()),
        ("kind", pa.string()),
        ("stage", pa.string()),
        ("part", pa.int32()),
        ("body", pa.binary()),
    ]
)

ELEMENTS, ROWS, HOLLOW, FILL, RANK = "elements", "rows", "hollow", "fill", "rank"
"""Rows for a task: elements or rows for a set, contributions for a map, or what to do with what is there."""
CONTRIBUTION, PENDING, WAITING, RUNS, RANKING, REFILL, CHANGES = (
    "contribution",
    "pending",
    "waiting",
    "runs",
    "ranking",
    "refill",
    "changes",
)
"""Rows for the driver."""

Row = tuple[int, str, str, int, bytes]


@dataclass(frozen=True)
class Work:
    """A pipeline, what it has, and for which stages a batch is meant."""

    pipeline: Pipeline
    files: Files
    state: State
    told: frozenset[str] = frozenset()
    """Stages of which the driver wants to know the changes."""
    only: frozenset[str] | None = None
    """The stages that take something in, when they are filled; else all."""
    fired: frozenset[str] = frozenset()
    """Stages that take in what waits though they have a trigger."""
    large: bool = False
    """Whether so much goes between levels that it is better shuffled by Spark than merged by the driver."""

    def fed_by(self, name: str) -> tuple[Stage, ...]:
        """The stages that a source or stage feeds, of those that take something in."""
        found = self.pipeline.fed_by(name)
        return found if self.only is None else tuple(stage for stage in found if stage.name in self.only)

    def level(self, stage: Stage) -> int:
        """How many stages with partitions lie above a stage, itself included."""
        level, here = 0, stage
        while True:
            level += isinstance(here, SetStage | MapStage)
            feeder = here.input.feeder
            if isinstance(feeder, Source):
                return level
            here = feeder

    def slots(self, level: int) -> dict[tuple[str, int], int]:
        """The tasks of a level: stage and partition → number."""
        places = [
            (stage.name, part)
            for stage in self.pipeline.stages
            if isinstance(stage, SetStage | MapStage) and self.level(stage) == level
            for part in range(stage.partitioning.count)
        ]
        return {place: slot for slot, place in enumerate(places)}

    def is_deferred(self, stage: Stage) -> bool:
        """Whether what a batch contributes to a stage waits for its trigger."""
        return not isinstance(stage.trigger, OnNewData) and stage.name not in self.fired

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return max((self.level(stage) for stage in self.pipeline.stages), default=0)

    def feed(self, name: str, batch: Batch) -> Iterator[Row]:
        """What a batch that comes out of a source or stage is for those that it feeds."""
        if name in self.told:
            weights = batch.weights or [1] * len(batch)
            yield 0, CHANGES, name, 0, encode([batch.elements(), weights])
        for stage in self.fed_by(name):
            try:
                yield from self._fed(stage, batch)
            except NotInvertibleError:
                yield 0, REFILL, stage.name, 0, b""

    def _fed(self, stage: Stage, batch: Batch) -> Iterator[Row]:
        match stage:
            case SetStage():
                slots = self.slots(self.level(stage))
                for part, body in _elements(stage, through(stage.input, batch)):
                    yield slots[stage.name, part], ELEMENTS, stage.name, part, body
            case MapStage():
                slots = self.slots(self.level(stage))
                made = through(stage.input, batch)
                kind = PENDING if self.is_deferred(stage) else HOLLOW
                for part, body in _hollow(stage, made):
                    yield slots[stage.name, part], kind, stage.name, part, body
                if kind == PENDING:
                    yield 0, WAITING, stage.name, len(made), b""
            case AggregateStage():
                made = through(stage.input, batch)
                yield 0, CONTRIBUTION, stage.name, len(made), encode(list(aggregate_of(stage, made)))
            case TopStage():
                pass  # its map's tasks see to it


def _hollow(stage: MapStage, batch: Batch) -> Iterator[tuple[int, bytes]]:
    """Contributions by partition."""
    counted = counts_by_part(stage, batch)
    if counted is not None:
        for part, (keys, counts) in counted.items():
            yield part, packed_counts([store_key(key) for key in keys], counts)
        return
    parts: dict[int, list[Any]] = {}
    for (part, key), found in map_of(stage, batch).items():
        parts.setdefault(part, []).append((key, found))
    for part, entries in parts.items():
        yield part, packed(entries)


def _elements(stage: SetStage, batch: Batch) -> Iterator[tuple[int, bytes]]:
    """Elements by partition: pairs of a key's bytes and an element's."""
    parts: dict[int, list[tuple[bytes, bytes]]] = {}
    for key, element in zip(called(stage.key, batch), batch.elements(), strict=True):
        part = stage.partitioning.of_key(key)
        parts.setdefault(part, []).append((encode(store_key(key)), encode(element)))
    for part, pairs in parts.items():
        yield part, encode([[key for key, _ in pairs], [element for _, element in pairs], batch.weights])


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """The rows that a task is given."""
    found: list[Row] = []
    for batch in batches:
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def as_arrow(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows as a task gives them away."""
    listed = list(rows)
    if listed:
        columns = zip(zip(*listed, strict=True), _ARROW, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in columns], schema=_ARROW)
