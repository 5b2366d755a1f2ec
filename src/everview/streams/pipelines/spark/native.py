"""What Spark does by itself: partial aggregation by its own functions, before any Python sees a row.

That is possible where one stage reads a source, and the functions between say which column they take. The
rows that come out are those that the tasks in Python would have made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType

from everview.algebra.crdt.counter import Count
from everview.algebra.crdt.sketches import Hll, Kll
from everview.errors import DataError
from everview.streams.pipelines.description import (
    AggregateStage,
    FlatMap,
    Map,
    MapStage,
    Stage,
    is_plain_count,
)
from everview.streams.pipelines.encoding import encode
from everview.streams.pipelines.functions import SPACE, Field, Words
from everview.streams.pipelines.partitioning import ByKey
from everview.streams.pipelines.spark.maps import packed
from everview.streams.pipelines.spark.work import CONTRIBUTION, HOLLOW, SCHEMA, Row, Work, as_arrow

__all__ = ["native_contribution", "native_counts", "part_sql", "quoted"]

_WHOLE = (IntegerType, LongType)


def quoted(name: str) -> str:
    """A column's name in Spark's SQL."""
    return f"`{name.replace('`', '``')}`"


def part_sql(expression: str, kind: Any, parts: ByKey) -> str | None:
    """The partition of a key, as `ByKey` has it; None where only Python can tell."""
    if parts.function is not None:
        return None
    if isinstance(kind, StringType):
        text = f"concat('s', {expression})"
    elif isinstance(kind, _WHOLE):
        text = f"concat('i', cast({expression} AS STRING))"
    else:
        return None
    return f"cast(coalesce(pmod(crc32({text}), {parts.count}), {parts.of_key(None)}) AS INT)"


def native_counts(work: Work, stage: Stage, frame: DataFrame) -> DataFrame | None:
    """What a batch contributes to a map that counts, for its tasks; None where only Python can tell."""
    if not isinstance(stage, MapStage) or not is_plain_count(stage) or work.is_deferred(stage):
        return None
    found = _elements(stage, stage.key, frame)
    if found is None or not isinstance(stage.partitioning, ByKey):
        return None
    elements, kind = found
    part = part_sql("e", kind, stage.partitioning)
    if part is None:
        return None
    name, slots = stage.name, work.slots(work.level(stage))

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered: dict[int, list[Any]] = {}
        for batch in batches:
            for place, key, count in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                gathered.setdefault(place, []).append((key, (count, None)))
        yield from as_arrow(
            (slots[name, place], HOLLOW, name, place, packed(entries)) for place, entries in gathered.items()
        )

    return elements.groupBy("e").count().selectExpr(f"{part} AS part", "e", "count").mapInArrow(pack, SCHEMA)


def native_contribution(stage: Stage, frame: DataFrame) -> list[Row] | None:
    """What a batch contributes to an aggregate, as a row for the driver; None where only Python can tell."""
    if not isinstance(stage, AggregateStage):
        return None
    counts = isinstance(stage.aggregate, Count) and stage.value is None
    if counts and not stage.input.steps:
        found: tuple[DataFrame, Any] | None = (frame.selectExpr("1 AS e"), IntegerType())
    else:
        found = _elements(stage, stage.value, frame)
    if found is None:
        return None
    elements, kind = found
    match stage.aggregate:
        case Count() if counts:
            sketch = "cast(NULL AS BINARY)"
        case Hll(lg_k) if isinstance(kind, LongType | StringType):
            sketch = f"hll_sketch_agg(e, {lg_k})"
        case Kll(k) if isinstance(kind, DoubleType):
            sketch = f"kll_sketch_agg_double(e, {k})"
        case _:
            return None
    (row,) = elements.selectExpr("count(*) AS n", "count(e) AS there", f"{sketch} AS body").collect()
    if row.n != row.there and not counts:
        raise DataError(f"{stage.name} is given NULL, which it cannot take; put filter(…) before it")
    body = None if row.body is None or not row.n else bytes(row.body)
    return [(0, CONTRIBUTION, stage.name, row.n, encode([row.n, body]))]


def _elements(stage: Stage, taken: Any, frame: DataFrame) -> tuple[DataFrame, Any] | None:
    """What a stage takes of a source's rows, in one column `e`, and its type; None when only Python knows."""
    types = {column.name: column.dataType for column in frame.schema}
    match (*stage.input.steps, taken):
        case (FlatMap(Words(str() as name)), None) if isinstance(types.get(name), StringType):
            pattern = SPACE.replace("\\", "\\\\")
            words = f"filter(split({quoted(name)}, '{pattern}+'), w -> w <> '')"
            return frame.selectExpr(f"explode({words}) AS e"), StringType()
        case (Map(Field(name)), None) | (Field(name),) if name in types:
            return frame.selectExpr(f"{quoted(name)} AS e"), types[name]
        case _:
            return None
