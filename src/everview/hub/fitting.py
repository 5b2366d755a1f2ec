"""Whether the columns of a DataFrame fit those of a relation; they are matched by name."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import types as st

from everview.engines.spark.types import spark_type
from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.types import Field, Kind

__all__ = ["check_columns", "missing"]

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
