"""One published table as a Delta Lake table: what its log says, and how a version is committed.

A commit carries two marks. The application transaction, the table's name with the number of the refresh, is
how Delta says which batch a table has; but a repeated one is accepted silently, so it is looked at before.
What decides is the other: a digest of the runs that the rows were read from, among the commit's notes. Equal
runs are equal rows, whatever the number of the refresh.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, create_table_with_add_actions

from everview.engines.spark.types import arrow_type
from everview.errors import StoreError
from everview.hub.files import Entry, Files
from everview.language.plan import Schema

__all__ = ["Mark", "State", "commit", "new_file", "rows_in", "state"]

_NOTE = "everview"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TRIES = 6
"""How often a log is read or written: object_store does not ask again for an answer that broke off."""
_RECENT = 20
"""How many commits are looked through for ours: others may have compacted the table since."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a commit shows: a refresh of a table, read from the runs of this digest."""

    table: str
    refresh: int
    runs: str


@dataclass(frozen=True, slots=True)
class State:
    """The last version of a table, the folders its files lie in, and the marks of its last commit by us."""

    version: int
    folders: tuple[str, ...]
    refresh: int | None
    runs: str | None

    def shows(self, mark: Mark) -> bool:
        """Whether the table has these rows already."""
        return self.runs == mark.runs if self.runs is not None else self.refresh == mark.refresh


def state(files: Files, folder: str, table: str) -> State | None:
    """What the log of a table in a folder says; None when there is no table yet."""
    for _ in range(_TRIES - 1):
        with suppress(StoreError):
            return _state(files, folder, table)
    return _state(files, folder, table)


def _state(files: Files, folder: str, table: str) -> State | None:
    uri, options = files.delta(folder)
    with _told(files, folder):
        if not DeltaTable.is_deltatable(uri, options):
            return None
        found = DeltaTable(uri, storage_options=options)
        notes = (entry.get(_NOTE) for entry in found.history(_RECENT))
        runs = next((str(note["runs"]) for note in notes if note), None)
        folders = {path.rsplit("/", 2)[-2] for path in found.file_uris()}
        return State(found.version(), tuple(sorted(folders)), found.transaction_version(table), runs)


@contextmanager
def _told(files: Files, folder: str) -> Iterator[None]:
    """An error of `deltalake` as ours: its own may have an address with a signature in it."""
    try:
        yield
    except (DeltaError, OSError) as error:
        place, _ = files.delta(folder)
        reason = " ".join(_COLOURS.sub("", files.redacted(str(error))).split())
        raise StoreError(
            f"the published table at {place} cannot be read or written: {reason}; publish again when that is "
            "mended",
            path=place,
        ) from None


def commit(files: Files, folder: str, schema: Schema, added: Sequence[AddAction], mark: Mark) -> State:
    """Make these files all of the table, which is created if need be; others' readers see all or nothing.

    A commit that failed may have been made nevertheless: the log says so.
    """
    for _ in range(_TRIES - 1):
        with suppress(StoreError):
            _commit(files, folder, schema, added, mark)
        found = state(files, folder, mark.table)
        if found is not None and found.runs == mark.runs:
            return found
    _commit(files, folder, schema, added, mark)
    found = state(files, folder, mark.table)
    if found is None:
        raise RuntimeError(f"{folder} has no log right after a commit")
    return found


def _commit(files: Files, folder: str, schema: Schema, added: Sequence[AddAction], mark: Mark) -> None:
    properties = CommitProperties(
        custom_metadata={_NOTE: {"refresh": mark.refresh, "runs": mark.runs}},
        app_transactions=[Transaction(mark.table, mark.refresh, _now_ms())],
    )
    columns = DeltaSchema.from_arrow(_arrow_schema(schema))
    uri, options = files.delta(folder)
    with _told(files, folder):
        if DeltaTable.is_deltatable(uri, options):
            DeltaTable(uri, storage_options=options).create_write_transaction(
                list(added), "overwrite", columns, commit_properties=properties
            )
        else:
            create_table_with_add_actions(
                uri,
                columns,
                list(added),
                name=mark.table,
                storage_options=options,
                commit_properties=properties,
            )


def new_file(files: Files, entry: Entry, folder: str) -> AddAction | None:
    """A Parquet file in a folder of the table, as a commit adds it; None when it has no rows.

    Its counts are those of its footer: wrong ones would lose rows in readers without a word. Least and
    greatest values are left out, since rows lie in the order of their hashes: no file could be passed over.
    """
    with files.open(entry.path) as file:
        footer = pq.read_metadata(file)
    if not footer.num_rows:
        return None
    stats = {"numRecords": footer.num_rows, "nullCount": _null_counts(footer)}
    name = entry.path.rpartition("/")[2]
    return AddAction(f"{folder}/{name}", entry.size, {}, entry.written_us // 1000, True, json.dumps(stats))


def rows_in(added: Sequence[AddAction]) -> int:
    """How many rows files have together."""
    return sum(int(json.loads(action.stats)["numRecords"]) for action in added)


def _null_counts(footer: pq.FileMetaData) -> dict[str, int]:
    """How many NULLs each column has, where the footer tells."""
    counts = {}
    for place, field in enumerate(footer.schema.to_arrow_schema()):
        groups = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
        if all(group is not None and group.has_null_count for group in groups):
            counts[field.name] = sum(group.null_count for group in groups)
    return counts


def _arrow_schema(schema: Schema) -> pa.Schema:
    """The columns by their names; NULL may be anywhere, as in the files that Spark writes."""
    return pa.schema([pa.field(field.name, arrow_type(field.type)) for field in schema])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
