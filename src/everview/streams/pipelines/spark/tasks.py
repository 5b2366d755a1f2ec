"""The tasks of a batch: what is done to a source's rows, and in each partition of a set or map."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import xxhash

from everview.errors import DataError
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.change import difference
from everview.streams.pipelines.description import MapStage, SetStage, TopStage
from everview.streams.pipelines.encoding import decode, encode
from everview.streams.pipelines.functions import Field
from everview.streams.pipelines.ranking import reranked
from everview.streams.pipelines.spark.maps import MapPart
from everview.streams.pipelines.spark.sets import ELEMENT, HASH, KEY, SetPart, batch_of
from everview.streams.pipelines.spark.work import (
    ELEMENTS,
    FILL,
    HOLLOW,
    RANK,
    RANKING,
    ROWS,
    RUNS,
    WAITING,
    Row,
    Work,
    as_arrow,
    rows_of,
)

SLOT = "_slot"
WEIGHT, COMMIT = "_weight", "_commit"
"""The columns that a hub's stream of changes has beside those of its rows."""

CHUNK = 200_000
"""How many rows of a source are one hollow replica."""

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def source_task(work: Work, source: str) -> Task:
    """Make of a source's rows what the stages that it feeds are given."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            gathered.append(batch)
            rows += batch.num_rows
            if rows >= CHUNK:
                yield from as_arrow(work.feed(source, _events(gathered)))
                gathered, rows = [], 0
        if rows:
            yield from as_arrow(work.feed(source, _events(gathered)))

    return run


def set_task(work: Work, stage: SetStage) -> Task:
    """Take a source's rows into a set whose key is one of their columns; go on with those that are new."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered = [batch for batch in batches if batch.num_rows]
        if gathered:
            table = pa.Table.from_batches(gathered)
            part = table.column(SLOT)[0].as_py()
            yield from as_arrow(_admitted(work, stage, part, table.drop_columns([SLOT])))

    return run


def level_task(work: Work) -> Task:
    """Do what the rows of a task are for; rows for the driver go on to it."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places: dict[tuple[str, int], list[Row]] = {}
        for row in rows_of(batches):
            if row[1] in (ELEMENTS, ROWS, HOLLOW, FILL, RANK):
                places.setdefault((row[2], row[3]), []).append(row)
            else:
                yield from as_arrow([row])
        for (name, part), rows in places.items():
            stage = work.pipeline.stage(name)
            if isinstance(stage, SetStage):
                yield from as_arrow(_in_set(work, stage, part, rows))
            else:
                assert isinstance(stage, MapStage)
                yield from as_arrow(_in_map(work, stage, part, rows))

    return run


def _events(batches: list[pa.RecordBatch]) -> Batch:
    table = pa.Table.from_batches(batches)
    weights = table.column(WEIGHT).to_pylist() if WEIGHT in table.column_names else None
    names = [name for name in table.column_names if name not in (WEIGHT, COMMIT)]
    return Batch(columns={name: table.column(name) for name in names}, weights=weights)


def _in_set(work: Work, stage: SetStage, part: int, rows: list[Row]) -> Iterator[Row]:
    tables = [pa.ipc.open_file(pa.py_buffer(body)).read_all() for _, kind, _, _, body in rows if kind == ROWS]
    if tables:
        yield from _admitted(work, stage, part, pa.concat_tables(tables, promote_options="default"))
        return
    keys: list[bytes] = []
    elements: list[bytes] = []
    for _, kind, _, _, body in rows:
        if kind == FILL:
            yield from _filled(work, stage.name, set_part(work, stage, part).contents())
            return
        more_keys, more_elements, weights = decode(body)
        if weights is not None and min(weights) < 0:
            raise DataError(
                f"the set {stage.name} on Spark is given elements that go: a relation, a view and a map are "
                "sets already; build on them without it"
            )
        keys += more_keys
        elements += more_elements
    hashes = np.array([xxhash.xxh64_intdigest(key) for key in keys], dtype=np.uint64).astype(np.int64)
    columns = {HASH: hashes, KEY: pa.array(keys, pa.binary()), ELEMENT: pa.array(elements, pa.binary())}
    yield from _admitted(work, stage, part, pa.table(columns))


def _admitted(work: Work, stage: SetStage, part: int, table: pa.Table) -> Iterator[Row]:
    kept = set_part(work, stage, part)
    before = kept.runs[:]
    admitted, gone = kept.admit(table)
    if kept.runs == before:
        return
    yield 0, RUNS, stage.name, part, encode([list(run) for run in kept.runs])
    yield from work.feed(stage.name, batch_of(admitted))
    if gone:
        yield from work.feed(stage.name, Batch(gone, weights=[-1] * len(gone)))


def set_part(work: Work, stage: SetStage, part: int) -> SetPart:
    """The partition of a set as of the last record."""
    runs = work.state.runs.get(stage.name, {}).get(part, [])
    by_column = work.state.forms.get(stage.name, ELEMENTS) != ELEMENTS
    key = stage.key.name if by_column and isinstance(stage.key, Field) else KEY
    return SetPart(work.files, stage.name, part, [(path, rows) for path, rows in runs], key)


def map_part(work: Work, stage: MapStage, part: int) -> MapPart:
    """The partition of a map as of the last record."""
    runs = work.state.runs.get(stage.name, {}).get(part, [])
    return MapPart(work.files, stage, part, [(path, rows) for path, rows in runs])


def _in_map(work: Work, stage: MapStage, part: int, rows: list[Row]) -> Iterator[Row]:
    kept = map_part(work, stage, part)
    ranked = [one for one in work.pipeline.fed_by(stage.name) if isinstance(one, TopStage)]
    for _, kind, _, _, body in rows:
        if kind == FILL:
            yield from _filled(work, stage.name, iter([Batch(list(kept.values().items()))]))
        elif kind == RANK:
            for top in ranked:
                if top.name == body.decode():
                    yield 0, RANKING, top.name, part, encode(kept.ranking(top.n))
    bodies = [body for _, kind, _, _, body in rows if kind == HOLLOW]
    if bodies:
        wanted = stage.name in work.told or any(
            not isinstance(one, TopStage) for one in work.fed_by(stage.name)
        )
        old = _values(kept, bodies) if wanted else {}
        touched = kept.merge(bodies)
        yield 0, RUNS, stage.name, part, encode([list(run) for run in kept.runs])
        for top in ranked:
            if work.is_deferred(top):
                yield 0, WAITING, top.name, len(touched), b""
                continue
            ranking: list[Any] = work.state.rankings.get(top.name, {}).get(part, [])
            found = kept.contenders(ranking, top.n, touched)
            made = reranked(ranking, found, top.n, functools.partial(kept.ranking, top.n))
            yield 0, RANKING, top.name, part, encode(made)
        if wanted:
            yield from work.feed(stage.name, difference(old, kept.values_at(touched)))
    kept.keep()


def _values(kept: MapPart, bodies: list[bytes]) -> dict[Any, Any]:
    return kept.values_at({key for body in bodies for key in msgspec.msgpack.decode(body)[0]})


def _filled(work: Work, name: str, batches: Iterator[Batch]) -> Iterator[Row]:
    for batch in batches:
        if len(batch):
            yield from work.feed(name, batch)
