"""The record of a refresh: which runs hold each table, and which arrivals are in them.

Records are numbered files, each created only if absent and after all that it names; the greatest one is the
state of the hub, and the only authority. So a crash between files leaves the refresh before it, whole, and of
two hubs on one store only one can make a given refresh.
"""

from __future__ import annotations

import msgspec

from everview.errors import StoreError
from everview.hub.files import Files
from everview.hub.runs import Run

__all__ = ["FORMAT", "Record", "commit", "forget", "latest", "read", "refreshes"]

FORMAT = 2
_FOLDER = "refreshes"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One refresh. `tables` maps a name to its runs; arrivals up to number `arrived` are in them.

    `epoch` is the number of the opening that wrote it; `made_us` when, in microseconds since 1970.
    """

    refresh: int
    program: str
    epoch: int = 0
    arrived: int = 0
    made_us: int = 0
    tables: dict[str, tuple[Run, ...]] = msgspec.field(default_factory=dict)
    format: int = FORMAT

    def runs(self, table: str) -> tuple[Run, ...]:
        """The runs of a table; none when nothing was ever in it."""
        return self.tables.get(table, ())

    def paths(self) -> set[str]:
        """The files that it names."""
        return {part.path for runs in self.tables.values() for run in runs for part in run.parts}


class _Header(msgspec.Struct):
    format: int
    program: str


def _path(refresh: int) -> str:
    return f"{_FOLDER}/{refresh:012}.json"


def refreshes(files: Files) -> list[int]:
    """The numbers of all records, least first."""
    return [int(name.removesuffix(".json")) for name in files.list(_FOLDER)]


def read(files: Files, refresh: int) -> Record:
    """One record."""
    path = _path(refresh)
    content = files.read(path)
    try:
        header = msgspec.json.decode(content, type=_Header)
        if header.format > FORMAT:
            raise StoreError(
                f"{path} has format {header.format}, this Everview reads up to {FORMAT}: upgrade it",
                path=path,
            )
        return msgspec.json.decode(content, type=Record)
    except msgspec.DecodeError as error:
        raise StoreError(
            f"{path} is damaged: restore it, or remove it to go back a refresh", path=path
        ) from error


def latest(files: Files, program: str) -> Record:
    """The state of the store, or the empty one; StoreError when it is another program's or newer."""
    numbers = refreshes(files)
    if not numbers:
        return Record(refresh=0, program=program)
    record = read(files, numbers[-1])
    if record.program != program:
        raise StoreError(
            "this store was made by another program: open it with that one, or give a new folder",
            path=_path(numbers[-1]),
        )
    return record


def commit(files: Files, record: Record) -> None:
    """Make the record the state of the store; StoreError when another hub was first."""
    if not files.create(_path(record.refresh), msgspec.json.format(msgspec.json.encode(record), indent=1)):
        raise StoreError(
            f"another hub has made refresh {record.refresh} of this store: close this one and reopen",
            path=_path(record.refresh),
        )


def forget(files: Files, refresh: int) -> None:
    """Remove a record; what it named is named no longer."""
    files.remove_file(_path(refresh))
