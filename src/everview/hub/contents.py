"""The rows of a relation or view as a DataFrame, read from its runs by the executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark.hashing import Hashes
from everview.engines.spark.types import arrow_rows, arrow_schema, column_names, spark_schema
from everview.hub.files import Files
from everview.hub.jobs import entitled
from everview.hub.lookup import open_part, ranges, scanning
from everview.hub.record import Record
from everview.hub.relations import lattice_table, table_name
from everview.hub.searching import Request, TooManyError, search
from everview.hub.tables import Catalog

__all__ = ["Found", "contents", "local_rows", "local_table", "scan", "stored_table"]

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Rows that are looked up in a table by these hashes, in their order, each once."""

    table: str
    hashes: Hashes


PARTITIONS = 16
"""How many ranges of hashes a table is read in: its rows are put together range by range."""


def scan(spark: SparkSession, files: Files, catalog: Catalog, record: Record, table: str) -> DataFrame:
    """All rows of a table of the store: its columns, and what adds up or is the latest."""
    schema = spark_schema(catalog.schemas[table])
    parts = tuple(part for run in record.runs(table) for part in run.parts)
    if not parts:
        return spark.createDataFrame([], schema)
    rows = sum(run.rows for run in record.runs(table))
    tasks = max(1, min(PARTITIONS, rows // 10_000))
    request = Request(parts, catalog.layouts[table], None)
    reader = scanning(files, request, tasks, len(schema))
    entitled(reader, f"reads {catalog.words.of_tables([table])} of refresh {record.refresh}")
    return spark.range(0, tasks, 1, tasks).mapInArrow(reader, schema)


def stored_table(catalog: Catalog, name: str) -> str:
    """The table of the store that has the rows of a relation or view."""
    return table_name(name) if name in catalog.program.relations else catalog.circuit.views[name].name


def contents(spark: SparkSession, files: Files, catalog: Catalog, record: Record, name: str) -> DataFrame:
    """The rows of a relation or view, as often as they occur, its columns by position."""
    width = len(catalog.program.schema(name))
    names = column_names(width)
    often = f"c{width}"
    if name in catalog.program.relations:
        often = lattice_table(catalog.program.relations[name]).often
    rows = scan(spark, files, catalog, record, stored_table(catalog, name)).where(f"{often} > 0")
    return rows.selectExpr(*names, f"explode(sequence(1L, {often}))").select(*names)


def local_table(
    files: Files, catalog: Catalog, record: Record, name: str, most: int, found_by: Found | None = None
) -> pa.Table | None:
    """The rows of a relation or view, read by this process; None when there may be more than `most`.

    With `found_by`, those rows of a table that have all of them by whose keys' hashes they are found.
    """
    relation = catalog.program.relations.get(name)
    own = stored_table(catalog, name)
    table = found_by.table if found_by is not None else own
    width = len(catalog.program.schema(name))
    runs = record.runs(table)
    if found_by is None and sum(run.rows for run in runs) > most:
        return None
    parts = tuple(part for run in runs for part in run.parts)
    low, high = ranges(1)[0]
    request = Request(parts, catalog.layouts[table], found_by.hashes if found_by is not None else None)
    try:
        found = search(request, low, high, open_part(files), most if found_by is not None else None)
    except TooManyError:
        return None
    if found is None:
        return arrow_schema(catalog.program.schema(name)).empty_table()
    often = found.column(f"c{width}").to_numpy()
    if relation is not None and table == own:
        often = lattice_table(relation).weights(often)
    rows = found.select(column_names(width))
    return rows if np.all(often == 1) else rows.take(pa.array(np.repeat(np.arange(len(often)), often)))


def local_rows(files: Files, catalog: Catalog, record: Record, name: str, most: int) -> list[Row] | None:
    """The same as Python values."""
    table = local_table(files, catalog, record, name, most)
    return None if table is None else arrow_rows(table, catalog.program.schema(name))
