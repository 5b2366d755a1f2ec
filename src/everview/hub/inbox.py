"""Writes that have arrived and are in no refresh yet: numbered folders of Parquet.

A write is checked when it enters, rows like everywhere (`language.values`), DataFrames by their schema and,
while they are written, for NULLs. A folder counts once its mark is there, which is written last; so a write
is there whole or not at all, survives a crash, and is in exactly one refresh.
"""

from __future__ import annotations

import io
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)

from everview.engines.spark.types import arrow_schema, arrow_table, column_names
from everview.errors import DataError, StoreError
from everview.hub import offers
from everview.hub.files import Files
from everview.hub.fitting import converted, missing
from everview.hub.jobs import job, working
from everview.hub.marks import FOLDER, MARK, number_of
from everview.hub.offers import Write
from everview.hub.owning import check_counted, check_owner, counting
from everview.language.keyed_rows import rows_by_key
from everview.language.plan import Schema
from everview.language.relations import Relation, Semantics
from everview.language.sizes import check_sizes
from everview.language.types import Field
from everview.language.values import check_rows

__all__ = [
    "FOLDER",
    "Arrival",
    "Inbox",
    "number_of",
    "parquet_files",
    "read_arrivals",
    "read_mark",
    "size_of",
    "written_parts",
]

_ONLY = "part-0.parquet"

Rows = Iterable[Mapping[str, Any] | Sequence[Any]]


class Arrival(msgspec.Struct, frozen=True):
    """One write: its number, its relation, whether its rows are to be present, how many, and its folder."""

    number: int
    relation: str
    present: bool
    rows: int
    folder: str
    clears: bool = False
    """Whether a bag loses all copies of its rows; no write of a user's does that."""
    parts: tuple[str, ...] | None = None
    """The names of its files in its folder, or the paths of files elsewhere; no other is part of it.

    None in marks of older hubs.
    """
    offer: tuple[str, int] | None = None
    """The writer and the batch that it was adopted from."""
    writes: tuple[Write, ...] = ()
    """What an adopted batch consists of, with numbers of their own up to this one's."""

    @property
    def mark(self) -> int:
        """What its rows carry: twice the number, plus one if they are to be present; below 0 if it clears."""
        return -2 * self.number if self.clears else 2 * self.number + self.present

    def pieces(self) -> tuple[Arrival, ...]:
        """The writes that it consists of; nearly always itself."""
        if not self.writes:
            return (self,)
        first = self.number - len(self.writes) + 1
        return tuple(
            Arrival(first + place, self.relation, write.present, write.rows, self.folder, parts=write.parts)
            for place, write in enumerate(self.writes)
        )


def written_parts(files: Files, folder: str) -> tuple[str, ...]:
    """The names of the files that a job of Spark's, which has succeeded, wrote into a folder of its own."""
    return tuple(name for name in files.list(folder) if name.endswith(".parquet"))


def parquet_files(files: Files, arrival: Arrival) -> list[str]:
    """The paths of a write's files."""
    if arrival.writes:
        return [path for piece in arrival.pieces() for path in parquet_files(files, piece)]
    names = written_parts(files, arrival.folder) if arrival.parts is None else arrival.parts
    return [name if "/" in name else f"{arrival.folder}/{name}" for name in names]


def size_of(files: Files, arrival: Arrival) -> int:
    """The bytes of a write's files."""
    folder = offers.folder_of(*arrival.offer) if arrival.offer is not None else arrival.folder
    paths = {*parquet_files(files, arrival)}
    return sum(entry.size for entry in files.find(folder) if entry.path in paths)


def read_mark(files: Files, name: str) -> Arrival:
    """The write in a folder of this name; msgspec.DecodeError when its mark is damaged."""
    content = files.read(f"{FOLDER}/{name}/{MARK}")
    # Where it lies is what counts, not where it was written.
    return msgspec.structs.replace(msgspec.json.decode(content, type=Arrival), folder=f"{FOLDER}/{name}")


def read_arrivals(files: Files, schema: Schema, arrivals: Sequence[Arrival]) -> pa.Table:
    """The rows of writes to one relation, and the mark of each."""
    tables = []
    *fields, _ = schema
    wanted = arrow_schema(fields)
    for arrival in arrivals:
        for path in parquet_files(files, arrival):
            table = pq.read_table(io.BytesIO(files.read(path))).cast(wanted)
            mark = pa.array(np.full(table.num_rows, arrival.mark))
            tables.append(table.append_column(f"c{len(fields)}", mark))
    return pa.concat_tables(tables)


class Inbox:
    """The arrivals of a store after number `taken`, written by the hub of a name."""

    def __init__(self, files: Files, taken: int, name: str = "") -> None:
        self._files = files
        self._name = name
        self._next = max([taken, *(number for _, number in self._numbered())]) + 1
        self._under_way: set[int] = set()
        self._marked: dict[str, int] = {}
        self._numbering = threading.Lock()

    def _numbered(self) -> list[tuple[str, int]]:
        found = [(name, number_of(name)) for name in self._files.list(FOLDER)]
        return [(name, number) for name, number in found if number is not None]

    def waiting(self, taken: int) -> list[str]:
        """The names of folders that are complete and not in a refresh, and of what has no place here.

        A refresh takes all numbers up to its greatest. So while one is being written in another thread, those
        behind it wait with it; and numbers that we have not given are passed over by those that we will give.
        """
        with self._numbering:
            first = min(self._under_way, default=self._next)
        names = self._files.list(FOLDER)
        with self._numbering:
            quiet = first == self._next
            if quiet:
                self._next = max([first - 1, *(number_of(name) or 0 for name in names)]) + 1
                first = self._next
        return [
            name
            for name in names
            if (number := number_of(name)) is None or (taken < number < first and self._is_marked(name))
        ]

    def adopt(self, taken: Mapping[str, int]) -> dict[str, str]:
        """Give numbers to the writes of other processes that are in no record; the damaged, and why.

        The mark in the inbox is what counts from then on: a number that is given once stays, also if the
        refresh that follows comes no further than the gate.
        """
        offered, damaged = offers.waiting(self._files, taken)
        if offered:
            adopted = {name.rpartition("-")[2] for name in self._files.list(FOLDER) if self._is_marked(name)}
            for offer in offered:
                word = offers.word_of(offer.writer, offer.batch)
                if word not in adopted:
                    self._adopt(offer, word)
        return damaged

    def _adopt(self, offer: offers.Offer, word: str) -> None:
        with self._numbering:
            number = self._next + len(offer.writes) - 1
            self._next = number + 1
        arrival = Arrival(
            number,
            offer.relation,
            offer.writes[-1].present,
            sum(write.rows for write in offer.writes),
            f"{FOLDER}/{number:012}-{word}",
            offer=(offer.writer, offer.batch),
            writes=offer.writes,
        )
        self._files.create(f"{arrival.folder}/{MARK}", msgspec.json.encode(arrival))

    def writers(self, taken: Mapping[str, int], arrivals: Sequence[Arrival]) -> dict[str, int]:
        """What a record says of other processes' writes, with these in; of those gone for good, nothing."""
        found = {
            writer: batch
            for writer, batch in taken.items()
            if not offers.is_once(writer) or self._files.exists(f"{offers.FOLDER}/{writer}")
        }
        for arrival in arrivals:
            if arrival.offer is not None:
                writer, batch = arrival.offer
                found[writer] = max(batch, found.get(writer, 0))
        return found

    def pass_over(self, number: int) -> None:
        """Give no number up to this one: it was given before, to a write that is in the gate."""
        with self._numbering:
            self._next = max(self._next, number + 1)

    def _is_marked(self, name: str) -> bool:
        return self._files.exists(f"{FOLDER}/{name}/{MARK}")

    def given(self) -> int:
        """The greatest number of a write so far."""
        with self._numbering:
            return self._next - 1

    def is_settled(self, upto: int) -> bool:
        """Whether no write up to this number is still under way."""
        with self._numbering:
            return min(self._under_way, default=upto + 1) > upto

    def vanished(self) -> list[str]:
        """The names of writes that this hub marked, no refresh took in, and that are whole no longer."""
        with self._numbering:
            marked = list(self._marked)
        gone = [name for name in marked if not self._is_marked(name)]
        with self._numbering:
            for name in gone:
                self._marked.pop(name, None)
        return gone

    def forget(self, taken: int) -> None:
        """Remove the folders of arrivals that are in a refresh."""
        with self._numbering:
            self._marked = {name: number for name, number in self._marked.items() if number > taken}
        for name, number in self._numbered():
            if number <= taken:
                with suppress(StoreError, msgspec.DecodeError):
                    arrival = read_mark(self._files, name)
                    if arrival.offer is not None:
                        offers.remove(self._files, *arrival.offer)
                self._files.remove(f"{FOLDER}/{name}")

    def forget_unfinished(self) -> None:
        """Remove the folders of writes that never became whole; none may be under way."""
        for name, _ in self._numbered():
            if not self._is_marked(name):
                self._files.remove(f"{FOLDER}/{name}")

    def put_rows(self, relation: Relation, rows: Rows, *, present: bool) -> int:
        """Rows as Python values; how many there were."""
        keyed = relation.semantics is Semantics.KEYED
        if keyed and not present:
            checked = rows_by_key(relation, rows)
        else:
            checked = check_rows(relation.name, relation.schema, rows)
        if not checked:
            return 0
        if present:
            check_sizes(relation, checked)
        check_owner(relation, checked, self._name, present=present)
        accepted = len(checked)
        if keyed:
            # Within a write a key's last row counts.
            places = relation.key_positions
            checked = list({tuple(row[place] for place in places): row for row in checked}.values())
        content = _parquet(arrow_table(relation.schema, checked))
        with self._arrival(relation, present=present) as arrival:
            self._files.create(f"{arrival.folder}/{_ONLY}", content)
            self._mark(_of(arrival, (_ONLY,)), len(checked))
        return accepted

    def put_frame(self, relation: Relation, frame: DataFrame, *, present: bool) -> int:
        """A DataFrame, its columns matched by name; one Spark job, which writes and counts the rows."""
        if frame.isStreaming:
            raise DataError(
                f"a streaming DataFrame has no end, so it cannot be written into {relation.name} like this: "
                "after everview.hub.register(spark), write it with "
                f'frame.writeStream.format("everview").option("name", "{relation.name}")'
                + ("" if present else '.option("delete", "true")')
                + '.option("checkpointLocation", …).start(store)',
                relation=relation.name,
                expected="a DataFrame that is not streaming, or rows",
            )
        selected = frame.select(*converted(relation, frame))
        required = {name for name, field in _named(relation) if not field.nullable}
        if relation.semantics is Semantics.KEYED:
            keys = {column_names(len(relation.schema))[place] for place in relation.key_positions}
            selected = selected.dropDuplicates(sorted(keys))
            required = required if present else keys
        with self._arrival(relation, present=present) as arrival:
            return self._put_selected(relation, selected, required, arrival)

    def _put_selected(
        self, relation: Relation, selected: DataFrame, required: set[str], arrival: Arrival
    ) -> int:
        seen = Observation()
        checks = [F.count_if(F.col(name).isNull()).alias(f"missing_{name}") for name in sorted(required)]
        checks += counting(relation, self._name, present=arrival.present)
        watched = selected.observe(seen, F.count(F.lit(1)).alias("rows"), *checks)
        what = f"{'insert into' if arrival.present else 'delete from'} {relation.name}"
        with working(self._name, what), job(selected.sparkSession.sparkContext, f"write {arrival.number}"):
            watched.write.parquet(self._files.uri(arrival.folder))
        counts = seen.get
        for name, field in _named(relation):
            if counts.get(f"missing_{name}"):
                self._files.remove(arrival.folder)
                raise missing(relation, field)
        try:
            check_counted(relation, counts, self._name)
        except DataError:
            self._files.remove(arrival.folder)
            raise
        if not counts["rows"]:
            self._files.remove(arrival.folder)
            return 0
        self._files.settle(arrival.folder)
        self._mark(_of(arrival, written_parts(self._files, arrival.folder)), int(counts["rows"]))
        return int(counts["rows"])

    @contextmanager
    def _arrival(self, relation: Relation, *, present: bool) -> Iterator[Arrival]:
        """The next write, under way until it is marked or has failed."""
        with self._numbering:
            number, self._next = self._next, self._next + 1
            self._under_way.add(number)
        try:
            yield Arrival(number, relation.name, present, 0, f"{FOLDER}/{number:012}-{uuid.uuid4().hex[:8]}")
        finally:
            with self._numbering:
                self._under_way.discard(number)

    def _mark(self, arrival: Arrival, rows: int) -> None:
        """Say that a write is whole; before that it is not there."""
        content = msgspec.json.encode(msgspec.structs.replace(arrival, rows=rows))
        self._files.create(f"{arrival.folder}/{MARK}", content)
        with self._numbering:
            self._marked[arrival.folder.removeprefix(f"{FOLDER}/")] = arrival.number


def _of(arrival: Arrival, parts: tuple[str, ...]) -> Arrival:
    return msgspec.structs.replace(arrival, parts=parts)


def _named(relation: Relation) -> list[tuple[str, Field]]:
    return list(zip(column_names(len(relation.schema)), relation.schema, strict=True))


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, write_page_checksum=True)
    return buffer.getvalue()
