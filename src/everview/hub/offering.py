"""What `format("everview")` writes: each task its rows as Parquet into the store, and the driver one mark.

A batch of a stream is known by its query and its number, which Spark repeats when it repeats the batch; so it
is written once, whatever is killed when (see `offers`). A DataFrame that is written by itself has no such
name unless the user gives one.

A change stream's `_weight` says how often a row is inserted, or below 0 deleted. Then `_commit` says in which
order: refresh by refresh, what goes before what comes. Rows of one key that different tasks write are writes
of their own, for within one write a key has one row.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import types as st
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from everview.engines.spark.types import arrow_schema, arrow_type
from everview.errors import DataError, StoreError
from everview.hub import consumers, offers
from everview.hub.changes import WEIGHT
from everview.hub.files import Files
from everview.hub.fitting import check_columns, missing
from everview.hub.gathering import gathered_batches
from everview.hub.offers import Offer, Write
from everview.hub.owning import check_owners, check_writable
from everview.hub.reading import COMMIT, shape_at
from everview.language.relations import Relation, Semantics
from everview.language.types import Kind

if TYPE_CHECKING:
    from everview.hub.record import Record

__all__ = ["BatchWriter", "StreamWriter", "stream_writer", "writer"]

_ROWS = 1_000_000
_BYTES = 64 * 2**20
"""A task holds so many rows, or bytes of them, in memory; then it writes a file."""

# What Spark tells its tasks of a stream.
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class _Target:
    """What is written into what: shared by both kinds of writers, and sent to every task."""

    files: Files
    relation: Relation
    hub: str
    """The name of the hub, which owns what is written."""
    present: bool
    weighted: bool
    query: str
    columns: tuple[str, ...]

    def named(self, query: str) -> str:
        """The writer that a query is here."""
        verb = "change" if self.weighted else "insert" if self.present else "delete"
        return offers.name_of(query, self.relation.name, verb)


@dataclass(frozen=True, slots=True)
class _File:
    """A file that a task has written: its rows are of one refresh and sign."""

    commit: int
    present: bool
    rows: int
    path: str


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task has written, in its order, and for whom."""

    task: int
    query: str
    files: tuple[_File, ...]


def _target(
    files: Files, name: str, options: Mapping[str, str], schema: st.StructType, *, overwrite: bool
) -> _Target:
    """What is to be written, checked as far as the columns say."""
    record = _latest(files)
    relation = shape_at(files, name, record).relation
    if relation is None:
        raise DataError(f"{name} is a view: write into the relations it reads", relation=name)
    check_writable(relation)
    if overwrite:
        raise DataError(
            f'{name} cannot be overwritten: use mode("append") and outputMode("append"), and write with the '
            "option delete what is to go",
            relation=name,
        )
    delete = options.get("delete", "false").lower()
    if delete not in ("true", "false"):
        raise DataError(f"the option delete is {delete!r}: give true or false", value=delete)
    given = {field.name: field.dataType for field in schema.fields}
    weighted = WEIGHT.name in given and WEIGHT.name not in relation.columns
    if weighted:
        _check_weights(relation, given, delete=delete == "true")
    own = {column: kind for column, kind in given.items() if not weighted or column not in _TOLD}
    check_columns(relation, own)
    return _Target(
        files,
        relation,
        record.name,
        delete == "false",
        weighted,
        options.get("query", ""),
        tuple(schema.fieldNames()),
    )


_TOLD = (WEIGHT.name, COMMIT.name)


def _check_weights(relation: Relation, given: Mapping[str, st.DataType], *, delete: bool) -> None:
    if delete:
        raise DataError(
            "rows with _weight say whether they are deleted: leave out the option delete, or the column",
            relation=relation.name,
        )
    for column in _TOLD:
        if column not in given:
            raise DataError(
                f"rows with {WEIGHT.name} are changes, and {column} says in which order they were made: keep "
                "it, or set it to 0 where each row changes once",
                relation=relation.name,
                column=column,
            )
        if not isinstance(given[column], (st.LongType, st.IntegerType)):
            raise DataError(f"{column} is not BIGINT but {given[column].simpleString()}", column=column)


def writer(
    files: Files, name: str, options: Mapping[str, str], schema: st.StructType, *, overwrite: bool
) -> BatchWriter:
    """The writer of a DataFrame; with the options query and batch the same batch is written once."""
    target = _target(files, name, options, schema, overwrite=overwrite)
    batch = options.get("batch")
    if (batch is None) != (not target.query):
        raise DataError("give both the option query and the option batch, or neither", relation=name)
    if batch is None:
        return BatchWriter(target, offers.name_once(), 0)
    if not batch.isdecimal():
        raise DataError(f"the option batch is {batch!r}: give a number from 0 on", value=batch)
    return BatchWriter(target, target.named(target.query), int(batch))


def stream_writer(
    files: Files, name: str, options: Mapping[str, str], schema: st.StructType, *, overwrite: bool
) -> StreamWriter:
    """The writer of a stream."""
    return StreamWriter(_target(files, name, options, schema, overwrite=overwrite))


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, target: _Target, name: str, batch: int) -> None:
        self._target = target
        self._name = name
        self._batch = batch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """In a task: the rows of a partition."""
        return _written(self._target, iterator, self._name, self._batch, self._target.query)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks are done: the write is whole."""
        _commit(self._target, messages, self._name, self._batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """A task has failed: nothing was written."""
        _discard(self._target.files, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream, each once."""

    def __init__(self, target: _Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """In a task: the rows of a partition of a batch."""
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY) if context is not None else None
        batch = context.getLocalProperty(_BATCH) if context is not None else None
        if query is None or batch is None:
            raise StoreError(
                "Spark does not say of which query and batch these rows are", path=self._target.files.uri("")
            )
        return _written(self._target, iterator, self._target.named(query), int(batch), query)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  (Spark's)
        """All tasks are done: the batch is whole."""
        told = _messages(messages)
        if told:
            _commit(self._target, messages, self._target.named(told[0].query), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """A task has failed: nothing was written."""
        _discard(self._target.files, messages)


# In tasks.


def _written(
    target: _Target, batches: Iterator[pa.RecordBatch], name: str, batch: int, query: str
) -> Written:
    context = TaskContext.get()
    task = context.partitionId() if context is not None else 0
    files = target.files
    if files.exists(offers.mark_of(name, batch)):
        for _ in batches:  # It is there; Spark wants its rows read all the same.
            pass
        return Written(task, query, ())
    folder = offers.folder_of(name, batch)
    found: list[_File] = []
    for rows in gathered_batches(batches, _ROWS, _BYTES):
        for commit, present, piece in _split(target, rows):
            path = f"{folder}/{uuid.uuid4().hex}.parquet"
            files.create(path, _parquet(piece))
            found.append(_File(commit, present, piece.num_rows, path))
    return Written(task, query, tuple(found))


def _split(target: _Target, given: pa.Table) -> Iterator[tuple[int, bool, pa.Table]]:
    """The rows of one refresh and sign, one after the other, as they enter the relation."""
    rows = _converted(target.relation, given)
    if not target.weighted:
        if rows.num_rows:
            yield 0, target.present, _checked(target, rows, present=target.present)
        return
    if given.column(WEIGHT.name).null_count or given.column(COMMIT.name).null_count:
        raise DataError("a change has NULL for its _weight or _commit", relation=target.relation.name)
    weights = given.column(WEIGHT.name).to_numpy().astype(np.int64)
    commits = given.column(COMMIT.name).to_numpy()
    for commit in np.unique(commits).tolist():
        for present in (False, True):
            places = np.flatnonzero((commits == commit) & ((weights > 0) if present else (weights < 0)))
            if target.relation.semantics is Semantics.BAG:
                places = np.repeat(places, np.abs(weights[places]))
            if len(places):
                yield commit, present, _checked(target, rows.take(pa.array(places)), present=present)


def _converted(relation: Relation, given: pa.Table) -> pa.Table:
    """The columns of the relation, by position."""
    columns = []
    for field in relation.schema:
        kind = arrow_type(field.type)
        if field.name not in given.column_names:
            columns.append(pa.nulls(given.num_rows, kind))
            continue
        column = given.column(field.name).cast(kind)
        # There is one zero: adding it takes the sign off the other.
        columns.append(pc.add(column, 0.0) if field.type.kind is Kind.DOUBLE else column)
    return pa.Table.from_arrays(columns, schema=arrow_schema(relation.schema))


def _checked(target: _Target, rows: pa.Table, *, present: bool) -> pa.Table:
    """The rows, each key once; DataError when they may not enter."""
    relation = target.relation
    keyed = relation.semantics is Semantics.KEYED
    for place, field in enumerate(relation.schema):
        required = place in relation.key_positions if keyed and not present else not field.nullable
        if required and rows.column(place).null_count:
            raise missing(relation, field)
    check_owners(relation, rows, target.hub, present=present)
    return _last_of_each(rows, relation.key_positions) if keyed else rows


def _last_of_each(rows: pa.Table, key: Sequence[int]) -> pa.Table:
    """Of each key the last row."""
    names = [rows.column_names[place] for place in key]
    numbered = rows.select(names).append_column("at", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(names, use_threads=False).aggregate([("at", "max")])
    if last.num_rows == rows.num_rows:
        return rows
    return rows.take(pa.array(np.sort(last.column("at_max").to_numpy())))


def _parquet(rows: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, write_page_checksum=True)
    return buffer.getvalue()


# On the driver.


def _latest(files: Files) -> Record:
    """The last record, for the driver; a task needs none, nor their codec."""
    from everview.hub.history import History  # noqa: PLC0415

    return History(files).latest()


def _messages(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]


def _commit(target: _Target, messages: Sequence[WriterCommitMessage | None], name: str, batch: int) -> None:
    """Mark a write as whole, unless it was before: in the store, or in a record."""
    import msgspec  # noqa: PLC0415  (a task does not need it)

    files = target.files
    told = _messages(messages)
    writes = _writes(target.relation, told)
    query = next((message.query for message in told if message.query), "")
    offer = Offer(name, batch, target.relation.name, query, consumers.now_us(), writes)
    if not writes:
        return
    if _latest(files).writers.get(name, -1) >= batch:
        offers.remove(files, name, batch)
    elif not files.create(offers.mark_of(name, batch), msgspec.json.encode(offer)):
        _discard(files, messages)


def _writes(relation: Relation, messages: Sequence[Written]) -> tuple[Write, ...]:
    """What tasks have written, refresh by refresh, what goes before what comes."""
    files = [
        ((file.commit, file.present, message.task, place), file)
        for message in messages
        for place, file in enumerate(message.files)
    ]
    files.sort(key=lambda each: each[0])
    if relation.semantics is Semantics.KEYED:
        return tuple(Write(file.present, file.rows, (file.path,)) for _, file in files)
    grouped: dict[tuple[int, bool], list[_File]] = {}
    for _, file in files:
        grouped.setdefault((file.commit, file.present), []).append(file)
    return tuple(
        Write(present, sum(file.rows for file in those), tuple(file.path for file in those))
        for (_, present), those in grouped.items()
    )


def _discard(files: Files, messages: Sequence[WriterCommitMessage | None]) -> None:
    for message in _messages(messages):
        for file in message.files:
            files.remove_file(file.path)
