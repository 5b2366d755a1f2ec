"""Whether the columns of a DataFrame fit those of a relation; they are matched by name."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)
from pyspark.sql import types as st

from everview.engines.spark.types import column_names, spark_type
from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.types import Field, Kind

__all__ = ["check_columns", "converted", "missing"]

_WIDER: dict[Kind, tuple[type[st.DataType], ...]] = {
    Kind.BIGINT: (st.ByteType, st.ShortType, st.IntegerType),
    Kind.DOUBLE: (st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.FloatType),
    Kind.DECIMAL: (st.ByteType, st.ShortType, st.IntegerType, st.LongType),
}


def check_columns(relation: Relation, given: Mapping[str, st.DataType]) -> None:
    """DataError when there is a column that the relation has not, or has with another type."""
    unknown = next((name for name in given if name not in relation.columns), None)
    if unknown is not None:
        raise DataError(
            f"{relation.name} has no column {unknown!r}; its columns are {', '.join(relation.columns)}",
            relation=relation.name,
            column=unknown,
        )
    for field in relation.schema:
        if field.name in given and not _fits(given[field.name], field):
            raise DataError(
                f"{relation.name}.{field.name} cannot hold Spark's {given[field.name].simpleString()}: "
                f"expected {field.type}",
                relation=relation.name,
                column=field.name,
                expected=str(field.type),
            )


def converted(relation: Relation, frame: DataFrame) -> list[Column]:
    """The columns of a relation, `c0` and so on, from a DataFrame's; DataError when these do not fit."""
    given = {field.name: field.dataType for field in frame.schema.fields}
    check_columns(relation, given)
    columns = []
    for name, field in zip(column_names(len(relation.schema)), relation.schema, strict=True):
        kind = spark_type(field.type)
        if field.name not in given:
            columns.append(F.lit(None).cast(kind).alias(name))
            continue
        column = F.col("`" + field.name.replace("`", "``") + "`").cast(kind)
        # There is one zero: adding it takes the sign off the other.
        columns.append((column + F.lit(0.0) if field.type.kind is Kind.DOUBLE else column).alias(name))
    return columns


def missing(relation: Relation, field: Field) -> DataError:
    """A row has NULL where there may be none."""
    return DataError(
        f"{relation.name}.{field.name} is NOT NULL, but a row has no value there",
        relation=relation.name,
        column=field.name,
        expected=f"{field.type}, not NULL",
    )


def _fits(given: st.DataType, field: Field) -> bool:
    """Whether every value of a Spark type enters the column: its own type, or a narrower number."""
    wanted = spark_type(field.type)
    if type(given) is type(wanted) and not isinstance(given, st.DecimalType):
        return True
    if isinstance(given, st.DecimalType) and isinstance(wanted, st.DecimalType):
        whole = given.precision - given.scale
        return given.scale <= wanted.scale and whole <= wanted.precision - wanted.scale
    narrower = _WIDER.get(field.type.kind, ())
    if field.type.kind is Kind.DECIMAL and isinstance(given, narrower):
        return field.type.digits[0] >= 19
    return isinstance(given, narrower)
