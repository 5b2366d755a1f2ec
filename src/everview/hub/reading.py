"""A refresh as `spark.read.format("everview")` gives it: each task reads one range of the hashes.

Spark asks for the columns without saying whether they are for `read` or for `readStream`, so both have the
same: the row's, then its weight and the refresh. Of a snapshot each row comes as often as it occurs, and its
weight is 1.

Spark tells a source of Python which filters it has, and not which columns it needs: those are for the user to
name, in an option or as the schema. Of the filters one is worth having: the values of all columns by whose
hash rows are found, the key of a keyed relation. Then a few places of the runs are read instead of all rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as st
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    In,
    InputPartition,
)

from everview.engines.spark.hashing import Hashes, hash_columns
from everview.engines.spark.types import arrow_table, arrow_type, column_names, spark_type
from everview.errors import DataError, EverviewError
from everview.hub.changes import WEIGHT
from everview.hub.files import Files
from everview.hub.lookup import open_part, ranges
from everview.hub.runs import distinct
from everview.hub.searching import Request, search
from everview.language.relations import Semantics
from everview.language.types import BIGINT, Field, Kind
from everview.language.values import check_rows

if TYPE_CHECKING:
    # They bring the codec of records, which no task needs.
    from everview.hub.record import Record
    from everview.hub.shapes import Shape

__all__ = [
    "COMMIT",
    "PushingReader",
    "SnapshotReader",
    "batches",
    "chosen_fields",
    "read_schema",
    "shape_at",
    "task_count",
]

COMMIT = Field("_commit", BIGINT, nullable=False)
"""The refresh that made a change."""

TASK_ROWS = 250_000
"""About how many rows a task reads."""

BATCH_ROWS = 65_536
"""How many rows are given to Spark at once."""

_ALIKE = {Kind.BIGINT, Kind.TEXT, Kind.BLOB, Kind.DATE, Kind.BOOLEAN}
"""Whose values are told by a filter as they are stored."""

_KEYS = 1_000
"""How many keys are looked up at most; for more, all rows are read."""


def read_schema(files: Files, name: str, options: Mapping[str, str]) -> tuple[st.StructType, int]:
    """The columns that a reader shows, and the refresh that is the last now, or was asked for."""
    record = _record(files, _number(options, "refresh") if "refresh" in options else None)
    fields = _all_fields(shape_at(files, name, record))
    if "columns" in options:
        known = {field.name: field for field in fields}
        wanted = [column.strip() for column in options["columns"].split(",")]
        fields = tuple(_known(known, name, column) for column in wanted)
    return st.StructType([st.StructField(f.name, spark_type(f.type), True) for f in fields]), record.refresh


def shape_at(files: Files, name: str, record: Record) -> Shape:
    """The shape of a relation or view."""
    from everview.hub.shapes import read_shape  # noqa: PLC0415

    return read_shape(files, record.program, name)


def _number(options: Mapping[str, str], option: str) -> int:
    try:
        return int(options[option])
    except ValueError:
        raise DataError(
            f"the option {option} is {options[option]!r}: give the number of a refresh", value=options[option]
        ) from None


def _all_fields(shape: Shape) -> tuple[Field, ...]:
    taken = {column.lower() for column in shape.columns} & {WEIGHT.name, COMMIT.name}
    if taken:
        raise DataError(
            f"{shape.name} has a column {min(taken)}, which is what changes are told by: read it through a "
            "view that calls it something else",
            relation=shape.name,
            column=min(taken),
        )
    return (*shape.fields, WEIGHT, COMMIT)


def _known(fields: Mapping[str, Field], name: str, column: str) -> Field:
    if column not in fields:
        raise DataError(
            f"{name} has no column {column!r}; its columns are {', '.join(fields)}",
            relation=name,
            column=column,
        )
    return fields[column]


def chosen_fields(shape: Shape, schema: st.StructType) -> tuple[Field, ...]:
    """The columns that Spark was told of, be it by the user; DataError when there is none such."""
    known = {field.name: field for field in _all_fields(shape)}
    found = tuple(_known(known, shape.name, field.name) for field in schema.fields)
    for given, field in zip(schema.fields, found, strict=True):
        if given.dataType != spark_type(field.type):
            raise DataError(
                f"{shape.name}.{field.name} is not {given.dataType.simpleString()} but {field.type}",
                relation=shape.name,
                column=field.name,
                expected=str(field.type),
            )
    return found


def task_count(rows: int) -> int:
    """In how many ranges so many rows are read."""
    return max(1, math.ceil(rows / TASK_ROWS))


def batches(
    fields: Sequence[Field], chosen: Sequence[Field], rows: pa.Table, commit: int
) -> Iterator[pa.RecordBatch]:
    """Rows, whose last column is their weight, as Spark wants them; `fields` are the columns before it."""
    arrays = {field.name: rows.column(place) for place, field in enumerate((*fields, WEIGHT))}
    arrays[COMMIT.name] = pa.chunked_array([pa.array(np.full(rows.num_rows, commit))])
    schema = pa.schema([pa.field(field.name, arrow_type(field.type)) for field in chosen])
    wanted = pa.Table.from_arrays([arrays[field.name] for field in chosen], schema=schema)
    yield from wanted.to_batches(max_chunksize=BATCH_ROWS)


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a task reads."""

    request: Request
    low: int
    high: int
    commit: int


class SnapshotReader(DataSourceReader):
    """The rows of a relation or view after a refresh."""

    def __init__(
        self,
        files: Files,
        name: str,
        options: Mapping[str, str],
        refresh: int | None,
        schema: st.StructType,
    ) -> None:
        if "refresh" in options:
            refresh = _number(options, "refresh")
        self._files = files
        self._record = _record(files, refresh)
        self._shape = shape_at(files, name, self._record)
        self._fields = self._shape.fields
        self._by_parity = self._shape.by_parity
        self._chosen = chosen_fields(self._shape, schema)
        self._hashes: Hashes | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """One for each range of hashes, with the files that have some of it."""
        runs = self._record.runs(self._shape.table)
        parts = tuple(part for run in runs for part in run.parts)
        tasks = task_count(sum(run.rows for run in runs)) if self._hashes is None else 1
        found = []
        for low, high in ranges(tasks):
            met = tuple(part for part in parts if part.low <= high and part.high >= low)
            request = Request(met, self._shape.layout, self._hashes)
            found.append(InputPartition(_Piece(request, low, high, self._record.refresh)))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range."""
        piece: _Piece = partition.value
        rows = search(piece.request, piece.low, piece.high, open_part(self._files), None)
        if rows is not None:
            plain = _plain(rows, len(self._fields), parity=self._by_parity)
            yield from batches(self._fields, self._chosen, plain, piece.commit)

    def __getstate__(self) -> dict[str, Any]:
        """What tasks need: the record names every file of the store."""
        return {**self.__dict__, "_record": None, "_shape": None}


def _record(files: Files, refresh: int | None) -> Record:
    """The state after a refresh; before the first one there is nothing."""
    import msgspec  # noqa: PLC0415

    from everview.hub.history import History  # noqa: PLC0415

    history = History(files)
    if refresh is None:
        return history.latest()
    if not refresh:
        return msgspec.structs.replace(history.latest(), refresh=0, tables={})
    return history.past(refresh)


def _plain(stored: pa.Table, width: int, *, parity: bool) -> pa.Table:
    """The rows that are there, as often as they are, each with the weight 1."""
    often = stored.column(f"c{width}").to_numpy()
    if parity:
        often = often % 2
    rows = stored.select(column_names(width))
    if not np.all(often == 1):
        rows = rows.take(pa.array(np.repeat(np.arange(len(often)), often)))
    return rows.append_column(f"c{width}", pa.array(np.ones(rows.num_rows, dtype=np.int64)))


class PushingReader(SnapshotReader):
    """The same, where Spark asks about filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  (Spark's)
        """Look up by the key where it is given. Spark filters all the same: what is found is a few rows."""
        given = _values(filters)
        shape = self._shape
        named = [shape.fields[place] for place in shape.hashed]
        # Whole rows of relations are found by their ids, and who knows a whole row need not read it.
        by_key = shape.relation is None or shape.relation.semantics is Semantics.KEYED
        if by_key and named and all(field.name in given for field in named):
            cells = [given[field.name] for field in named]
            if math.prod(map(len, cells)) <= _KEYS:
                self._hashes = _hashes(shape.name, named, [*itertools.product(*cells)])
        return filters


def _values(filters: Iterable[Filter]) -> dict[str, tuple[Any, ...]]:
    """The values that a column may have, where a filter says that."""
    found: dict[str, tuple[Any, ...]] = {}
    for each in filters:
        match each:
            case EqualTo((column,), value) | EqualNullSafe((column,), value):
                found[column] = (value,)
            case In((column,), values):
                found.setdefault(column, values)
            case _:
                continue
    return found


def _hashes(name: str, fields: Sequence[Field], keys: Sequence[tuple[Any, ...]]) -> Hashes | None:
    """The hashes of keys; None when a value may be another one in Spark than here."""
    if any(field.type.kind not in _ALIKE for field in fields):
        return None
    try:
        checked = check_rows(name, [replace(field, nullable=True) for field in fields], keys)
    except EverviewError:
        return None
    table = arrow_table(tuple(fields), checked)
    return distinct(hash_columns(table.columns, fields, table.num_rows))
