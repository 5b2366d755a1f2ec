"""JSON lines in files of a folder: tasks read them with Arrow, each a range of bytes of one file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructType

from everview.errors import DataError
from everview.hub.files import Files
from everview.streams.pipelines.description import SetStage
from everview.streams.pipelines.functions import Field
from everview.streams.pipelines.spark.sets import HASH, packed_table
from everview.streams.pipelines.spark.tasks import Task
from everview.streams.pipelines.spark.work import ROWS, SCHEMA, Work, as_arrow

__all__ = ["json_rows", "new_files", "packed_rows"]

RANGE = 8_000_000
"""How many bytes of a file a task reads at once."""

Range = tuple[str, int, int]


def new_files(files: Files, known: set[str], most: int | None) -> list[tuple[str, int]]:
    """The files of a folder that are not known, in the order of their names, with their sizes."""
    found = [(entry.path, entry.size) for entry in files.find("") if entry.path not in known]
    return [one for one in found if not one[0].rpartition("/")[2].startswith((".", "_"))][:most]


def json_rows(
    spark: SparkSession, files: Files, chosen: list[tuple[str, int]], columns: StructType
) -> DataFrame:
    """The rows of some files, as columns of the given types; fields that it does not name are passed over."""
    asked, ranges = _asked(spark, chosen)
    return asked.mapInArrow(_reading(files, columns, ranges), columns)


def _asked(spark: SparkSession, chosen: list[tuple[str, int]]) -> tuple[DataFrame, list[list[Range]]]:
    """As many tasks as there are cores, each with its number, and the ranges of bytes that each reads.

    The ranges go with the function: a DataFrame of them would be one more stage.
    """
    ranges: list[Range] = [
        (path, start, min(start + RANGE, size)) for path, size in chosen for start in range(0, size, RANGE)
    ]
    tasks = max(1, min(spark.sparkContext.defaultParallelism, len(ranges)))
    return spark.range(0, tasks, 1, tasks), [ranges[task::tasks] for task in range(tasks)]


def packed_rows(
    work: Work,
    stage: SetStage,
    spark: SparkSession,
    files: Files,
    chosen: list[tuple[str, int]],
    columns: StructType,
) -> DataFrame | None:
    """The rows of some files for the tasks of a set, each partition's in one piece, not row by row.

    None where the key is no BIGINT, which is its own hash, or a function says in which partition it is.
    """
    if not isinstance(stage.key, Field) or stage.partitioning.function is not None:
        return None
    name, key, count = stage.name, stage.key.name, stage.partitioning.count
    if not any(column.name == key and isinstance(column.dataType, LongType) for column in columns):
        return None
    asked, ranges = _asked(spark, chosen)
    slots, read = work.slots(work.level(stage)), _reading(files, columns, ranges)

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered = [batch for batch in read(batches) if batch.num_rows]
        if not gathered:
            return
        table = pa.Table.from_batches(gathered)
        table = table.add_column(0, HASH, table.column(key))
        if table.column(key).null_count:
            raise DataError(f"an element of the set {name} has no key: NULL")
        hashes = map(crc32, map(b"i%d".__mod__, table.column(key).to_pylist()))
        places = np.fromiter(hashes, np.uint32, table.num_rows) % count
        for part in map(int, np.unique(places)):
            body = packed_table(table.filter(pa.array(places == part)))
            yield from as_arrow([(slots[name, part], ROWS, name, part, body)])

    return asked.mapInArrow(pack, SCHEMA)


def _reading(files: Files, columns: StructType, ranges: list[list[Range]]) -> Task:
    wanted = to_arrow_schema(columns)
    options = pj.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, start, until in chain(*(ranges[task] for task in batch.column(0).to_pylist())):
                with files.open(path) as file:
                    lines = _lines(file, start, until)
                if not lines.strip():
                    continue
                reading = pj.ReadOptions(use_threads=False, block_size=max(len(lines), 1))
                try:
                    table = pj.read_json(io.BytesIO(lines), reading, options)
                except pa.ArrowInvalid as error:
                    raise DataError(f"{path}, from byte {start}: no lines of {wanted}: {error}") from None
                yield from table.select(wanted.names).cast(wanted).to_batches()

    return read


def _lines(file: BinaryIO, start: int, until: int) -> bytes:
    """The lines that begin in a range."""
    file.seek(max(start - 1, 0))
    if start:
        file.readline()  # the end of a line that began before; nothing but its end if it ended there
    here = file.tell()
    if here >= until:
        return b""
    return file.read(until - here) + (b"" if _ended(file, until) else file.readline())


def _ended(file: BinaryIO, until: int) -> bool:
    file.seek(until - 1)
    return file.read(1) == b"\n"
