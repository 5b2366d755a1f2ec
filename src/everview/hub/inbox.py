"""Writes that have arrived and are in no refresh yet: numbered folders of Parquet.

A write is checked when it enters, rows like everywhere (`language.values`), DataFrames by their schema and,
while they are written, for NULLs. A folder counts once its mark is there, which is written last; so a write
is there whole or not at all, survives a crash, and is in exactly one refresh.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)
from pyspark.sql import types as st

from everview.engines.spark.types import arrow_schema, arrow_table, column_names, spark_type
from everview.errors import DataError
from everview.hub.files import Files
from everview.language.keyed_rows import rows_by_key
from everview.language.plan import Schema
from everview.language.relations import Relation, Semantics
from everview.language.types import Field, Kind
from everview.language.values import check_rows

__all__ = ["Arrival", "Inbox", "read_arrivals"]

Rows = Iterable[Mapping[str, Any] | Sequence[Any]]

_FOLDER = "inbox"
_MARK = "_arrival.json"


class Arrival(msgspec.Struct, frozen=True):
    """One write: its number, its relation, whether its rows are to be present, how many, and its folder."""

    number: int
    relation: str
    present: bool
    rows: int
    folder: str


def read_arrivals(files: Files, schema: Schema, arrivals: Sequence[Arrival]) -> pa.Table:
    """The rows of writes to one relation, and twice the number of the write, plus one if it is an insert."""
    tables = []
    *fields, _ = schema
    wanted = arrow_schema(fields)
    for arrival in arrivals:
        for name in files.list(arrival.folder):
            if name.endswith(".parquet"):
                table = pq.read_table(io.BytesIO(files.read(f"{arrival.folder}/{name}"))).cast(wanted)
                mark = pa.array(np.full(table.num_rows, 2 * arrival.number + arrival.present))
                tables.append(table.append_column(f"c{len(fields)}", mark))
    return pa.concat_tables(tables)


class Inbox:
    """The arrivals of a store after number `taken`."""

    def __init__(self, files: Files, taken: int) -> None:
        self._files = files
        self._next = max([taken, *(self._number(name) for name in files.list(_FOLDER))]) + 1

    @staticmethod
    def _number(name: str) -> int:
        return int(name.partition("-")[0])

    def arrivals(self, taken: int) -> list[Arrival]:
        """Those that are complete and not in a refresh, in the order of their numbers."""
        found = []
        for name in self._files.list(_FOLDER):
            folder = f"{_FOLDER}/{name}"
            if self._number(name) > taken and _MARK in self._files.list(folder):
                found.append(msgspec.json.decode(self._files.read(f"{folder}/{_MARK}"), type=Arrival))
        return found

    def forget(self, taken: int) -> None:
        """Remove the folders of arrivals that are in a refresh."""
        for name in self._files.list(_FOLDER):
            if self._number(name) <= taken:
                self._files.remove(f"{_FOLDER}/{name}")

    def clear(self, taken: int) -> None:
        """Remove also the folders that a crash left without their mark: no write is under way."""
        self.forget(taken)
        for name in self._files.list(_FOLDER):
            if _MARK not in self._files.list(f"{_FOLDER}/{name}"):
                self._files.remove(f"{_FOLDER}/{name}")

    def put_rows(self, relation: Relation, rows: Rows, *, present: bool) -> int:
        """Rows as Python values; how many there were."""
        keyed = relation.semantics is Semantics.KEYED
        if keyed and not present:
            checked = rows_by_key(relation, rows)
        else:
            checked = check_rows(relation.name, relation.schema, rows)
        if not checked:
            return 0
        accepted = len(checked)
        if keyed:
            # Within a write a key's last row counts.
            places = relation.key_positions
            checked = list({tuple(row[place] for place in places): row for row in checked}.values())
        arrival = self._next_arrival(relation, present=present)
        self._files.create(
            f"{arrival.folder}/part-0.parquet", _parquet(arrow_table(relation.schema, checked))
        )
        self._mark(arrival, len(checked))
        return accepted

    def put_frame(self, relation: Relation, frame: DataFrame, *, present: bool) -> int:
        """A DataFrame, its columns matched by name; one Spark job, which writes and counts the rows."""
        selected = frame.select(*_converted(relation, frame))
        required = {name for name, field in _named(relation) if not field.nullable}
        if relation.semantics is Semantics.KEYED:
            keys = {column_names(len(relation.schema))[place] for place in relation.key_positions}
            selected = selected.dropDuplicates(sorted(keys))
            required = required if present else keys
        arrival = self._next_arrival(relation, present=present)
        seen = Observation()
        checks = [F.count_if(F.col(name).isNull()).alias(f"missing_{name}") for name in sorted(required)]
        watched = selected.observe(seen, F.count(F.lit(1)).alias("rows"), *checks)
        watched.write.parquet(self._files.uri(arrival.folder))
        counts = seen.get
        for name, field in _named(relation):
            if counts.get(f"missing_{name}"):
                self._files.remove(arrival.folder)
                raise DataError(
                    f"{relation.name}.{field.name} is NOT NULL, but a row has no value there",
                    relation=relation.name,
                    column=field.name,
                    expected=f"{field.type}, not NULL",
                )
        self._mark(arrival, int(counts["rows"]))
        return int(counts["rows"])

    def _next_arrival(self, relation: Relation, *, present: bool) -> Arrival:
        number, self._next = self._next, self._next + 1
        return Arrival(number, relation.name, present, 0, f"{_FOLDER}/{number:012}-{uuid.uuid4().hex[:8]}")

    def _mark(self, arrival: Arrival, rows: int) -> None:
        """Say that a write is whole; before that it is not there."""
        content = msgspec.json.encode(msgspec.structs.replace(arrival, rows=rows))
        self._files.create(f"{arrival.folder}/{_MARK}", content)


def _named(relation: Relation) -> list[tuple[str, Field]]:
    return list(zip(column_names(len(relation.schema)), relation.schema, strict=True))


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


_WIDER: dict[Kind, tuple[type[st.DataType], ...]] = {
    Kind.BIGINT: (st.ByteType, st.ShortType, st.IntegerType),
    Kind.DOUBLE: (st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.FloatType),
    Kind.DECIMAL: (st.ByteType, st.ShortType, st.IntegerType, st.LongType),
}


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


def _converted(relation: Relation, frame: DataFrame) -> list[Any]:
    given = {field.name: field.dataType for field in frame.schema.fields}
    known = {field.name for field in relation.schema}
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise DataError(
            f"{relation.name} has no column {unknown!r}; its columns are {', '.join(relation.columns)}",
            relation=relation.name,
            column=unknown,
        )
    columns = []
    for name, field in _named(relation):
        kind = spark_type(field.type)
        if field.name not in given:
            columns.append(F.lit(None).cast(kind).alias(name))
            continue
        if not _fits(given[field.name], field):
            raise DataError(
                f"{relation.name}.{field.name} cannot hold Spark's {given[field.name].simpleString()}: "
                f"expected {field.type}",
                relation=relation.name,
                column=field.name,
                expected=str(field.type),
            )
        column = F.col("`" + field.name.replace("`", "``") + "`").cast(kind)
        # There is one zero: adding it takes the sign off the other.
        columns.append((column + F.lit(0.0) if field.type.kind is Kind.DOUBLE else column).alias(name))
    return columns
