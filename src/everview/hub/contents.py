"""The rows of a relation or view as a DataFrame, read from its runs by the executors."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark.types import arrow_rows, column_names, spark_schema
from everview.hub.files import Files
from everview.hub.lookup import open_part, ranges, scanning
from everview.hub.record import Record
from everview.hub.relations import lattice_table, table_name
from everview.hub.searching import Request, search
from everview.hub.tables import Catalog

__all__ = ["contents", "local_rows", "scan", "stored_table"]

Row = tuple[Any, ...]

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
    reader = scanning(files.uri(""), request, tasks, len(schema))
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


def local_rows(files: Files, catalog: Catalog, record: Record, name: str, most: int) -> list[Row] | None:
    """The rows of a relation or view, read by this process; None when there may be more than `most`."""
    relation = catalog.program.relations.get(name)
    table = stored_table(catalog, name)
    schema = catalog.program.schema(name)
    runs = record.runs(table)
    if sum(run.rows for run in runs) > most:
        return None
    parts = tuple(part for run in runs for part in run.parts)
    low, high = ranges(1)[0]
    found = search(Request(parts, catalog.layouts[table], None), low, high, open_part(files.uri("")), None)
    if found is None:
        return []
    values = found.column(f"c{len(schema)}").to_numpy()
    if relation is not None:
        values = lattice_table(relation).weights(values)
    return [
        row
        for row, count in zip(
            arrow_rows(found.select(column_names(len(schema))), schema), values.tolist(), strict=True
        )
        for _ in range(count)
    ]
