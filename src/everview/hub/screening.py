"""Screening: what has arrived is looked at before a refresh, and what cannot be read is set aside.

A folder that was damaged, or put there by hand, must not keep all other writes out of the views. It goes from
`inbox/` to `rejected/`, whole, with the reason beside it. Footers are always looked at. Pages are read when
they are few; else a refresh that fails over a damaged one says which it is, and the next sets it aside.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from everview.engines.spark.types import arrow_schema
from everview.errors import StoreError
from everview.hub import offers
from everview.hub.files import Files
from everview.hub.inbox import FOLDER as INBOX
from everview.hub.inbox import Arrival, number_of, parquet_files, read_mark
from everview.hub.marks import MARK
from everview.language.program import Program
from everview.language.relations import Relation

__all__ = ["FOLDER", "Rejected", "Screening"]

FOLDER = "rejected"
_REASON = "reason.txt"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A write that was set aside: its name below `rejected/`, and why."""

    name: str
    reason: str


class _UnfitError(Exception):
    """Why a write cannot be taken in."""


class Screening:
    """Tells the writes that can be read from those that cannot."""

    def __init__(self, files: Files, program: Program) -> None:
        self._files = files
        self._program = program
        self._blamed: dict[str, str] = {}

    def screen(self, names: Sequence[str], few: int) -> tuple[list[Arrival], tuple[Rejected, ...]]:
        """The writes of these folders, in their order, and those set aside; `few` rows are read through."""
        arrivals: list[Arrival] = []
        rejected: list[Rejected] = []
        for name in names:
            try:
                arrivals.append(self._look_at(name))
            except _UnfitError as error:
                rejected.append(self._set_aside(name, str(error)))
        if sum(arrival.rows for arrival in arrivals) <= few:
            for arrival in tuple(arrivals):
                try:
                    self._read_through(arrival)
                except _UnfitError as error:
                    arrivals.remove(arrival)
                    rejected.append(self.reject(arrival, str(error)))
        return arrivals, tuple(rejected)

    def missed(self, names: Sequence[str]) -> tuple[Rejected, ...]:
        """Writes that were acknowledged and are not whole any more, other than those set aside before."""
        found = []
        # One that was given another name is looked at under that one.
        moved = self._marked_numbers() if names else set()
        for name in names:
            if number_of(name) in moved:
                continue
            if self._files.exists(f"{INBOX}/{name}"):
                found.append(self._set_aside(name, "its mark was removed after it was written"))
            elif not self._files.exists(f"{FOLDER}/{name}"):
                reason = "its folder was removed from the inbox before a refresh"
                self._files.create(f"{FOLDER}/{name}/{_REASON}", f"{reason}\n".encode())
                found.append(Rejected(name, reason))
        return tuple(found)

    def _marked_numbers(self) -> set[int]:
        """The numbers that the marks in the inbox say, be they in folders of other names."""
        found = set()
        for name in self._files.list(INBOX):
            with suppress(StoreError, msgspec.DecodeError):
                found.add(read_mark(self._files, name).number)
        return found

    def reject(self, arrival: Arrival, reason: str) -> Rejected:
        """Set a write aside that can be read and may not be made."""
        return self._set_aside(arrival.folder.removeprefix(f"{INBOX}/"), reason)

    def blame(self, arrivals: Sequence[Arrival], failure: Exception) -> StoreError | None:
        """Which writes a failed refresh failed over; the next sets them aside. None when it was none of them.

        Spark names the file that it could not read, also when the bytes are such as we would accept.
        """
        text = str(failure)
        found = {}
        for arrival in arrivals:
            if arrival.folder in text or any(path in text for path in _elsewhere(arrival)):
                found[arrival.folder] = f"Spark cannot read it: {_line(failure)}"
            # Files that cannot be reached now say nothing about the write.
            with suppress(StoreError):
                try:
                    self._read_through(arrival)
                except _UnfitError as error:
                    found[arrival.folder] = str(error)
        if not found:
            return None
        self._blamed.update(found)
        told = "; ".join(f"{folder}: {reason}" for folder, reason in found.items())
        return StoreError(
            f"nothing was refreshed, because a write is damaged: {told}. The next refresh sets it aside",
            path=next(iter(found)),
        )

    def _look_at(self, name: str) -> Arrival:
        """The write in a folder, as its mark and its footers have it."""
        number = number_of(name)
        if number is None:
            raise _UnfitError("this is no folder of a write: write with `hub.insert` or `hub.delete`")
        folder = f"{INBOX}/{name}"
        if folder in self._blamed:
            raise _UnfitError(self._blamed.pop(folder))
        try:
            arrival = read_mark(self._files, name)
        except msgspec.DecodeError as error:
            raise _UnfitError(f"its mark is damaged: {error}") from error
        if arrival.number != number:
            raise _UnfitError(f"it is marked as write {arrival.number}: it was moved here from elsewhere")
        if arrival.relation not in self._program.relations:
            raise _UnfitError(f"the program has no relation {arrival.relation}")
        relation = self._program.relations[arrival.relation]
        for piece in arrival.pieces():
            rows = sum(self._rows(path, relation) for path in parquet_files(self._files, piece))
            if rows != piece.rows:
                raise _UnfitError(f"its files have {rows} rows, but {piece.rows} were written")
        return arrival

    def _rows(self, path: str, relation: Relation) -> int:
        """How many rows a file has that fits the relation."""
        name = path.rpartition("/")[2]
        try:
            with self._files.open(path) as opened, pq.ParquetFile(opened) as file:
                schema, metadata = file.schema_arrow, file.metadata
        except FileNotFoundError as error:
            raise _UnfitError(f"{name} is missing") from error
        except (pa.ArrowException, OSError) as error:
            raise _UnfitError(f"{name} is damaged: {_line(error)}") from error
        wanted = arrow_schema(relation.schema)
        if [(field.name, field.type) for field in schema] != [(field.name, field.type) for field in wanted]:
            raise _UnfitError(
                f"{name} does not have the columns of {relation.name}: expected {_columns(wanted)}; "
                f"found {_columns(schema)}"
            )
        for place, field in enumerate(relation.schema):
            if not field.nullable and _has_nulls(metadata, place):
                raise _UnfitError(f"{name} has NULLs in {relation.name}.{field.name}, which is NOT NULL")
        return int(metadata.num_rows)

    def _read_through(self, arrival: Arrival) -> None:
        """Read all pages and compare their checksums, where they have any."""
        for path in parquet_files(self._files, arrival):
            try:
                with (
                    self._files.open(path) as opened,
                    pq.ParquetFile(opened, page_checksum_verification=True) as file,
                ):
                    for batch in file.iter_batches():
                        batch.validate(full=True)
            except (pa.ArrowException, OSError) as error:
                raise _UnfitError(f"{path.rpartition('/')[2]} is damaged: {_line(error)}") from error

    def _set_aside(self, name: str, reason: str) -> Rejected:
        """Copy it, say why, then remove it; what was set aside before under this name stays.

        The reason is there when all is copied: without it the next time goes on with the copying, with it
        there is another copy. The mark goes before the rest, and a write without a mark is no write.
        """
        kept, number = name, 1
        while self._files.exists(f"{FOLDER}/{kept}/{_REASON}"):
            number += 1
            kept = f"{name}-{number}"
        place = f"{INBOX}/{name}"
        arrival = self._adopted(name)
        for path in parquet_files(self._files, arrival) if arrival is not None else ():
            with suppress(StoreError):  # it may be what is missing
                self._files.copy(path, f"{FOLDER}/{kept}/{path.rpartition('/')[2]}")
        for entry in self._files.find(INBOX):
            if entry.path == place:  # what is no folder gets one
                self._files.copy(place, f"{FOLDER}/{kept}/{name}")
            elif entry.path.startswith(f"{place}/"):
                self._files.copy(entry.path, f"{FOLDER}/{kept}/{entry.path.removeprefix(f'{place}/')}")
        self._files.create(f"{FOLDER}/{kept}/{_REASON}", f"{reason}\n".encode())
        self._files.remove_file(f"{place}/{MARK}")
        self._files.remove(place)
        if arrival is not None and arrival.offer is not None:
            offers.remove(self._files, *arrival.offer)
        return Rejected(kept, reason)

    def _adopted(self, name: str) -> Arrival | None:
        """The write of another process that a folder of the inbox stands for; its files lie elsewhere."""
        try:
            arrival = read_mark(self._files, name)
        except (StoreError, msgspec.DecodeError):
            return None
        return arrival if arrival.offer is not None else None

    def refuse(self, offered: Mapping[str, str]) -> tuple[Rejected, ...]:
        """Set aside writes of other processes that are not even fit to be adopted, for these reasons."""
        found = []
        for folder, reason in offered.items():
            kept = f"{folder.replace('/', '-')}-{uuid.uuid4().hex[:8]}"
            for entry in self._files.find(folder):
                self._files.copy(entry.path, f"{FOLDER}/{kept}/{entry.path.removeprefix(f'{folder}/')}")
            self._files.create(f"{FOLDER}/{kept}/{_REASON}", f"{reason}\n".encode())
            self._files.remove(folder)
            found.append(Rejected(kept, reason))
        return tuple(found)


def _elsewhere(arrival: Arrival) -> list[str]:
    """The paths of its files that are not in its folder."""
    return [path for piece in arrival.pieces() for path in piece.parts or () if "/" in path]


def _has_nulls(metadata: pq.FileMetaData, place: int) -> bool:
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(place).statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count:
            return True
    return False


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
