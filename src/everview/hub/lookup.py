"""Lookups: one Spark job finds rows of many tables, each task in its own range of hashes.

The hashes travel with the job, the rows come back in columns. Files are mapped by the executor and stay so,
as long as its Python process lives: they never change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from everview.engines.spark.types import column_names
from everview.hub.files import Files
from everview.hub.jobs import entitled, job
from everview.hub.runs import Part
from everview.hub.searching import Request, TooManyError, search

__all__ = ["collect", "open_part", "ranges", "scanning"]

_MAPPED = 512
"""How many files a process keeps mapped."""

_TRIES = 3

_maps: OrderedDict[tuple[str, str], pa.MemoryMappedFile] = OrderedDict()


def ranges(tasks: int) -> list[tuple[int, int]]:
    """All hashes in as many ranges, both ends included."""
    width = 2**64 // tasks
    starts = [-(2**63) + number * width for number in range(tasks)]
    return [(start, end - 1) for start, end in zip(starts, [*starts[1:], 2**63], strict=True)]


def open_part(files: Files) -> Callable[[Part], pa.Table]:
    """What opens the parts of a hub's runs, without reading them."""
    uri = files.uri("")

    def opened(part: Part) -> pa.Table:
        known = uri, part.path
        if known in _maps:
            _maps.move_to_end(known)
        else:
            _maps[known] = _mapped(files, part.path)
            if len(_maps) > _MAPPED:
                _maps.popitem(last=False)
        source = _maps[known]
        source.seek(part.offset)
        return pa.ipc.open_file(pa.BufferReader(source.read_buffer(part.length))).read_all()

    return opened


def _mapped(files: Files, path: str) -> pa.MemoryMappedFile:
    """A file, mapped; another process may have removed the copy of this machine before it was."""
    for _ in range(_TRIES):
        try:
            return pa.memory_map(files.local(path))
        except FileNotFoundError:
            continue
    return pa.memory_map(files.local(path))


def collect(
    spark: SparkSession, files: Files, requests: Sequence[Request], tasks: int, most: int, what: str
) -> list[pa.Table | None] | None:
    """What each request finds, in one job that does `what`; None when that is more than `most` rows."""
    schema = "request INT, rows BINARY"
    task = entitled(_task(files, requests, tasks, most), what)
    with job(spark.sparkContext, what):
        found = spark.range(0, tasks, 1, tasks).mapInArrow(task, schema).toArrow()
    pieces: list[list[pa.Table]] = [[] for _ in requests]
    rows = 0
    for number, content in zip(*(column.to_pylist() for column in found.columns), strict=True):
        if content is None:
            return None
        table = pa.ipc.open_stream(content).read_all()
        rows += table.num_rows
        pieces[number].append(table)
    if rows > most:
        return None
    return [pa.concat_tables(tables) if tables else None for tables in pieces]


def scanning(
    files: Files, request: Request, tasks: int, width: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does that is given numbers of ranges: the first `width` columns of the rows in them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = open_part(files)
        for batch in batches:
            for task in batch.column(0).to_pylist():
                low, high = ranges(tasks)[task]
                table = search(request, low, high, opened, None)
                if table is not None:
                    yield from table.select(column_names(width)).to_batches()

    return run


def _task(
    files: Files, requests: Sequence[Request], tasks: int, most: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = open_part(files)
        for batch in batches:
            for task in batch.column(0).to_pylist():
                low, high = ranges(tasks)[task]
                left = most // tasks
                for number, request in enumerate(requests):
                    try:
                        table = search(request, low, high, opened, left)
                    except TooManyError:
                        yield _answer(number, None)
                        return
                    if table is not None:
                        left -= table.num_rows
                        yield _answer(number, _stream(table))

    return run


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _answer(number: int, content: bytes | None) -> pa.RecordBatch:
    arrays = [pa.array([number], pa.int32()), pa.array([content], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, names=["request", "rows"])
