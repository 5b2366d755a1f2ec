"""The record of a refresh: which folder holds each table, and which arrivals are in it.

Records are numbered files, each created only if absent and after all that it names; the greatest one is
the state of the hub, and the only authority. So a crash between files leaves the refresh before it, whole,
and of two hubs on one store only one can make a given refresh.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from everview.errors import StoreError
from everview.hub.files import Files

__all__ = ["FORMAT", "Record", "commit", "latest"]

FORMAT = 1
_FOLDER = "refreshes"


@dataclass(frozen=True, slots=True)
class Record:
    """One refresh. `tables` maps a name to its folder; arrivals up to number `arrived` are in them."""

    refresh: int
    program: str
    arrived: int = 0
    tables: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT


def _path(refresh: int) -> str:
    return f"{_FOLDER}/{refresh:012}.json"


def latest(files: Files, program: str) -> Record:
    """The state of the store, or the empty one; StoreError when it is another program's or newer."""
    names = files.list(_FOLDER)
    if not names:
        return Record(0, program)
    path = f"{_FOLDER}/{names[-1]}"
    try:
        record = Record(**json.loads(files.read(path)))
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"{path} is damaged: restore it, or remove it to go back a refresh", path=path
        ) from error
    if record.format > FORMAT:
        raise StoreError(
            f"{path} has format {record.format}, this Everview reads up to {FORMAT}: upgrade it", path=path
        )
    if record.program != program:
        raise StoreError(
            "this store was made by another program: open it with that one, or give a new folder", path=path
        )
    return record


def commit(files: Files, record: Record) -> None:
    """Make the record the state of the store; StoreError when another hub was first."""
    content = json.dumps(asdict(record), indent=1, sort_keys=True).encode()
    if not files.create(_path(record.refresh), content):
        raise StoreError(
            f"another hub has made refresh {record.refresh} of this store: close one of them and reopen",
            path=_path(record.refresh),
        )
