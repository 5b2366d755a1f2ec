"""Publications: which version of each published table shows which refresh.

Each table has its own Delta log, and no commit spans two of them. A publication is recorded after all of its
commits, so the last one names versions that belong together; and it names the folders that these versions
read, so that a vacuum need not replay the logs.
"""

from __future__ import annotations

import msgspec

from everview.errors import StoreError
from everview.hub.files import Files

__all__ = ["Publication", "Published", "forget", "last", "publications", "read", "record"]

_FOLDER = "publications"


class Published(msgspec.Struct, frozen=True):
    """A version of a published table, and the folders that its files lie in."""

    version: int
    folders: tuple[str, ...]


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """One publication: its number, its refresh and when that was made, and the tables by their names."""

    number: int
    refresh: int
    made_us: int
    tables: dict[str, Published]
    format: int = 1


def _path(number: int) -> str:
    return f"{_FOLDER}/{number:012}.json"


def publications(files: Files) -> list[int]:
    """The numbers of all publications, least first."""
    return [int(name.removesuffix(".json")) for name in files.list(_FOLDER)]


def read(files: Files, number: int) -> Publication:
    """One publication."""
    try:
        return msgspec.json.decode(files.read(_path(number)), type=Publication)
    except msgspec.DecodeError as error:
        raise StoreError(
            f"{_path(number)} is damaged: remove it and publish again", path=_path(number)
        ) from error


def last(files: Files) -> Publication | None:
    """The last publication, if there was any."""
    numbers = publications(files)
    return read(files, numbers[-1]) if numbers else None


def record(files: Files, publication: Publication) -> None:
    """Record a publication; StoreError when another hub was first."""
    content = msgspec.json.format(msgspec.json.encode(publication), indent=1)
    if not files.create(_path(publication.number), content):
        raise StoreError(
            "another hub has published in this store: close this one and reopen",
            path=_path(publication.number),
        )


def forget(files: Files, number: int) -> None:
    """Remove the record of a publication."""
    files.remove_file(_path(number))
