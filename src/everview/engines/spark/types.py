"""Our eight types as Spark's and Arrow's, and rows across the border in columns.

A type has exactly one Spark type, and rows always come with their schema: nothing is inferred. Columns
are known by position (`c0`, `c1`, …), because Spark folds the case of names and we do not. A TIMESTAMP
is an instant in microseconds; a DOUBLE has one zero and one NaN, which equals itself and is greatest, as
Spark compares them already; TEXT compares by bytes, Spark's UTF8_BINARY.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, assert_never

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from everview.language.plan import Schema
from everview.language.types import Field, Kind, Type
from everview.language.values import canonical_double
from everview.tables.arrow import arrow_type

__all__ = [
    "arrow_rows",
    "arrow_schema",
    "arrow_table",
    "arrow_type",
    "column_names",
    "frame",
    "from_arrow",
    "rows_of",
    "spark_schema",
    "spark_type",
    "sql_type",
]

Row = tuple[Any, ...]

NOTHING = "nothing"
"""The one column of a row that has none: Spark has no rows of no columns."""


def column_names(width: int, *, start: int = 0) -> list[str]:
    """The names of `width` columns by position."""
    return [f"c{index}" for index in range(start, start + width)]


def spark_type(kind: Type) -> st.DataType:
    """The Spark type that holds exactly the values of ours."""
    match kind.kind:
        case Kind.BOOLEAN:
            return st.BooleanType()
        case Kind.BIGINT:
            return st.LongType()
        case Kind.DOUBLE:
            return st.DoubleType()
        case Kind.DECIMAL:
            whole, scale = kind.digits
            return st.DecimalType(whole + scale, scale)
        case Kind.TEXT:
            return st.StringType()
        case Kind.BLOB:
            return st.BinaryType()
        case Kind.DATE:
            return st.DateType()
        case Kind.TIMESTAMP:
            return st.TimestampType()
        case Kind.UNKNOWN:
            raise ValueError("a finished plan has no unknown types")
        case _:
            assert_never(kind.kind)


def sql_type(kind: Type) -> str:
    """The same type as it is written in Spark SQL."""
    return spark_type(kind).simpleString().upper()


def spark_schema(fields: Sequence[Field]) -> st.StructType:
    """The Spark schema of rows with these columns, by position."""
    named = zip(column_names(len(fields)), fields, strict=True)
    return st.StructType([st.StructField(name, spark_type(field.type), True) for name, field in named])


def arrow_schema(fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema of rows with these columns, by position."""
    named = zip(column_names(len(fields)), fields, strict=True)
    return pa.schema([pa.field(name, arrow_type(field.type)) for name, field in named])


def arrow_table(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    """Rows in their one form (see `language.values`) as columns."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, arrow_type(field.type)) for field, column in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def frame(spark: SparkSession, schema: Schema, rows: Sequence[Row]) -> DataFrame:
    """Rows in their one form as a DataFrame."""
    return from_arrow(spark, schema, arrow_table(schema, rows))


def from_arrow(spark: SparkSession, schema: Schema, table: pa.Table) -> DataFrame:
    """A table of `arrow_schema(schema)` as a DataFrame of `spark_schema(schema)`."""
    if table.num_rows == 0:
        return spark.createDataFrame([], spark_schema(schema))
    return spark.createDataFrame(table, spark_schema(schema))


def rows_of(frame: DataFrame, schema: Schema) -> list[Row]:
    """The rows of a DataFrame whose first columns are `schema`'s, as Python values in their one form."""
    return arrow_rows(frame.toArrow(), schema)


def arrow_rows(table: pa.Table, schema: Schema) -> list[Row]:
    """The rows of a table whose first columns are `schema`'s, as Python values in their one form."""
    columns = [_values(column, field.type) for field, column in zip(schema, table.columns, strict=False)]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _values(column: pa.ChunkedArray, kind: Type) -> list[Any]:
    match kind.kind:
        case Kind.TIMESTAMP:
            # Arrow's own conversion gives another object for UTC than ours, one that compares slowly.
            moments = column.cast(pa.timestamp("us")).to_pylist()
            return [None if moment is None else moment.replace(tzinfo=dt.UTC) for moment in moments]
        case Kind.DOUBLE:
            return [None if value is None else canonical_double(value) for value in column.to_pylist()]
        case _:
            return list(column.to_pylist())
