"""The record of a refresh: which runs hold each table, and which arrivals are in them.

Records are numbered files, each created only if absent and after all that it names; the greatest one is the
state of the hub, and the only authority. So a crash between files leaves the refresh before it, whole, and of
two hubs on one store only one can make a given record.

Every opening makes a record too, of the next epoch (see `opening`): so the hub that was there before it can
make no more. That holds as long as no record is removed, for then its number could be taken again.
"""

from __future__ import annotations

import msgspec

from everview.errors import StoreError
from everview.hub.files import Files
from everview.hub.runs import Run

__all__ = ["FOLDER", "FORMAT", "Record", "commit", "forget", "latest", "read", "refreshes", "require_epoch"]

FORMAT = 7
FOLDER = "refreshes"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The state after `refresh` refreshes. `tables` maps a name to its runs; arrivals up to `arrived` are in.

    `number` is the record's own; `epoch` that of the opening that wrote it; `made_us` when, in microseconds
    since 1970, and `refreshed_us` when the refresh was made that it is of. `gate` is the word by which the
    gate remembers what it has told (see `gate`), empty where there is none; `exported` the greatest number
    that was given to what came from it.
    """

    number: int = 0
    refresh: int
    program: str
    epoch: int = 0
    arrived: int = 0
    made_us: int = 0
    ids: bool = False
    """Whether whole rows of relations are found by their ids: since format 4."""
    levels: bool = False
    """Whether rows of recursions are kept with their levels: since format 7."""
    changed: dict[str, str] = msgspec.field(default_factory=dict)
    """Table → a name for its contents, new with every change; merged runs have the same contents."""
    refreshed_us: int = 0
    name: str = ""
    """What the hub is called that has the store open, or had it last."""
    writers: dict[str, int] = msgspec.field(default_factory=dict)
    """The batch up to which the writes of other processes are in, query by query (see `offers`)."""
    gate: str = ""
    exported: int = 0
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


def _path(number: int) -> str:
    return f"{FOLDER}/{number:012}.json"


def refreshes(files: Files) -> list[int]:
    """The numbers of all records, least first."""
    return [int(name.removesuffix(".json")) for name in files.list(FOLDER)]


def read(files: Files, number: int) -> Record:
    """One record."""
    path = _path(number)
    content = files.read(path)
    try:
        header = msgspec.json.decode(content, type=_Header)
        if header.format > FORMAT:
            raise StoreError(
                f"{path} has format {header.format}, this Everview reads up to {FORMAT}: upgrade it",
                path=path,
            )
        record = msgspec.json.decode(content, type=Record)
    except msgspec.DecodeError as error:
        raise StoreError(
            f"{path} is damaged: restore it, or remove it to go back a refresh", path=path
        ) from error
    # Before format 3 there was a record for each refresh and no other; before format 5 there were no gates;
    # before format 6 nobody but the hub wrote; before format 7 recursions had no levels.
    return msgspec.structs.replace(
        record, number=record.number if record.format > 2 else number, format=FORMAT
    )


def latest(files: Files, program: str) -> Record:
    """The state of the store, or the empty one; StoreError when it is another program's or newer."""
    numbers = refreshes(files)
    if not numbers:
        return Record(refresh=0, program=program, ids=True, levels=True)
    record = read(files, numbers[-1])
    if record.program != program:
        raise StoreError(
            "this store was made by another program: open it with that one, or bring it over to a changed "
            "one with `everview migrate FOLDER --program FILE`",
            path=_path(numbers[-1]),
        )
    return record


def commit(files: Files, record: Record) -> None:
    """Make the record the state of the store; StoreError when another hub was first."""
    made = _path(record.number)
    if not files.create(made, msgspec.json.format(msgspec.json.encode(record), indent=1)):
        raise _taken_over(record.number)
    if refreshes(files)[-1] > record.number:
        # A later epoch had made this number too, and has removed it since.
        files.remove_file(made)
        raise _taken_over(record.number)


def forget(files: Files, number: int) -> None:
    """Remove a record; what it named is named no longer."""
    files.remove_file(_path(number))


def require_epoch(files: Files, record: Record) -> None:
    """StoreError when the store was opened again after the opening that made this record."""
    last = refreshes(files)[-1]
    if last > record.number and read(files, last).epoch != record.epoch:
        raise _taken_over(record.number + 1)


def _taken_over(number: int) -> StoreError:
    return StoreError(
        f"another hub has taken this store over and made record {number}: close this one and open it again",
        path=_path(number),
    )
