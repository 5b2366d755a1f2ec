"""A hub's tables: a row's value at the last refresh that changed the table, and the one before.

A stored table has the columns `c0`, `c1`, …, then `now` and `was`. Of a set relation these are causal
lengths, of which the odd ones are present; of a view they are multiplicities. So one folder answers for
the state before, the state after and the delta, and nothing has to be kept in memory between them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as st

from everview.engines.spark.types import column_names, spark_schema
from everview.language.plan import Schema
from everview.planner.delta import State

__all__ = ["Table", "merged_relation", "merged_view", "stored_schema"]


def stored_schema(schema: Schema) -> st.StructType:
    """The schema of a stored table."""
    fields = [st.StructField(name, st.LongType(), True) for name in ("now", "was")]
    return st.StructType([*spark_schema(schema).fields, *fields])


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table that Spark knows as the temporary view `name`; `touched` in the refresh at hand."""

    name: str
    schema: Schema
    is_relation: bool
    touched: bool

    def from_item(self, state: State) -> str:
        """The rows of a state, as often as they occur; of the delta once, with their weight."""
        columns = ", ".join(column_names(len(self.schema)))
        before = "was" if self.touched else "now"
        if state is State.DELTA:
            weight = f"now % 2 - {before} % 2" if self.is_relation else f"now - {before}"
            rows = f"SELECT {columns}, {weight} AS c{len(self.schema)} FROM {self.name} WHERE {weight} <> 0"
            return f"({rows})"
        value = "now" if state is State.NEW else before
        if self.is_relation:
            return f"(SELECT {columns} FROM {self.name} WHERE {value} % 2 = 1)"
        copies = f"explode(sequence(1L, {value})) AS copy"
        return f"(SELECT {columns} FROM (SELECT *, {copies} FROM {self.name} WHERE {value} > 0))"


def merged_relation(schema: Schema, stored: str, arrived: str | None) -> str:
    """The stored rows joined with writes: by key the greatest causal length, and one more if it must turn.

    `arrived` has the columns, whether the row is to be present (`present`), and the number of the write
    (`number`); the last one counts. A row that never was has length 0 and is not stored.
    """
    columns = ", ".join(column_names(len(schema)))
    unwritten = "CAST(NULL AS BOOLEAN) AS present, CAST(NULL AS BIGINT) AS number"
    rows = f"SELECT {columns}, now, {unwritten} FROM {stored}"
    if arrived is not None:
        rows += f" UNION ALL SELECT {columns}, CAST(NULL AS BIGINT), present, number FROM {arrived}"
    joined = (
        f"SELECT {columns}, coalesce(max(now), 0L) AS was, max_by(present, number) AS wanted "
        f"FROM ({rows}) GROUP BY {columns}"
    )
    turned = "CASE WHEN wanted <> (was % 2 = 1) THEN was + 1 ELSE was END"
    grown = f"SELECT {columns}, {turned} AS now, was FROM ({joined})"
    return f"SELECT {columns}, now, was FROM ({grown}) WHERE now > 0"


def merged_view(schema: Schema, stored: str, delta: str) -> str:
    """The stored rows with the weights of a delta added; a row that has vanished stays for one refresh."""
    width = len(schema)
    columns = ", ".join(column_names(width))
    both = (
        f"SELECT {columns}, now AS was, 0L AS more FROM {stored} "
        f"UNION ALL SELECT {columns}, 0L AS was, c{width} AS more FROM ({delta})"
    )
    summed = (
        f"SELECT {columns}, sum(was) AS was, sum(was) + sum(more) AS now FROM ({both}) GROUP BY {columns}"
    )
    return f"SELECT {columns}, now, was FROM ({summed}) WHERE now <> 0 OR was <> 0"
