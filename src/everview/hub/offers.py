"""Writes of other processes, that wait beside the inbox until a refresh adopts them.

Numbers are given by the driver that holds the store, and others cannot have one. So they name a write by the
query that it is of and its batch, and put it into a folder of that name: files of Parquet first, and at last
a mark, created only if absent, that lists those that count. A batch that is written again finds its mark
there. The refresh that takes it in says so in its record, query by query, and what is said there is never
adopted again, however much of it is still lying about.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from everview.hub.files import Files

__all__ = [
    "FOLDER",
    "Offer",
    "Write",
    "abandoned",
    "folder_of",
    "is_once",
    "mark_of",
    "name_of",
    "name_once",
    "offered",
    "remove",
    "waiting",
    "word_of",
]

FOLDER = "offered"
_MARK = "_offer.json"
_ONCE = "once-"
_BATCH = re.compile(r"\d{12,}")


@dataclass(frozen=True, slots=True)
class Write:
    """Rows that are to be present, or not, in files at these paths."""

    present: bool
    rows: int
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """A batch of a query, for a relation. `query` is what people know it by, `writer` its name here."""

    writer: str
    batch: int
    relation: str
    query: str
    made_us: int
    writes: tuple[Write, ...]
    """One after the other."""


def name_of(query: str, relation: str, verb: str) -> str:
    """The name of what a query does to a relation: one query may write into several."""
    said = f"{query}\0{relation}\0{verb}".encode()
    return f"query-{hashlib.sha256(said).hexdigest()[:32]}"


def name_once() -> str:
    """A name for a write that is not repeated."""
    return f"{_ONCE}{uuid.uuid4().hex}"


def is_once(writer: str) -> bool:
    """Whether it is such a name: once it is gone, nobody comes back to it."""
    return writer.startswith(_ONCE)


def folder_of(writer: str, batch: int) -> str:
    """Where the files of a batch lie."""
    return f"{FOLDER}/{writer}/{batch:012}"


def mark_of(writer: str, batch: int) -> str:
    """The path of its mark."""
    return f"{folder_of(writer, batch)}/{_MARK}"


def word_of(writer: str, batch: int) -> str:
    """A word for a batch, by which the inbox knows that it has it."""
    return hashlib.sha256(f"{writer}/{batch}".encode()).hexdigest()[:16]


def offered(files: Files) -> list[tuple[str, int]]:
    """The writers and batches that are there and whole, in the order of the batches."""
    found = []
    for writer in files.list(FOLDER):
        batches = [int(name) for name in files.list(f"{FOLDER}/{writer}") if _BATCH.fullmatch(name)]
        found += [(writer, batch) for batch in sorted(batches) if files.exists(mark_of(writer, batch))]
    return found


def waiting(files: Files, taken: Mapping[str, int]) -> tuple[list[Offer], dict[str, str]]:
    """The batches that are in no record, a query's one after the other; and damaged ones, with the reason.

    What is left of those that are in one is removed.
    """
    import msgspec  # noqa: PLC0415  (tasks name what they write by this module, and have no codec)

    found: list[Offer] = []
    damaged: dict[str, str] = {}
    for writer, batch in offered(files):
        if batch <= taken.get(writer, -1):
            remove(files, writer, batch)
            continue
        try:
            read = msgspec.json.decode(files.read(mark_of(writer, batch)), type=Offer)
        except msgspec.DecodeError as error:
            damaged[folder_of(writer, batch)] = f"its mark is damaged: {error}"
            continue
        if (read.writer, read.batch) != (writer, batch):
            damaged[folder_of(writer, batch)] = "it is marked as another write: it was moved here"
            continue
        # The clocks of writers may go back; the batches of a query do not.
        earlier = max((other.made_us for other in found if other.writer == writer), default=0)
        found.append(replace(read, made_us=max(read.made_us, earlier)))
    return sorted(found, key=lambda offer: (offer.made_us, offer.writer, offer.batch)), damaged


def remove(files: Files, writer: str, batch: int) -> None:
    """Remove what is left of a batch."""
    files.remove(f"{FOLDER}/{writer}" if is_once(writer) else folder_of(writer, batch))


def abandoned(files: Files, before_us: float) -> list[str]:
    """The folders of batches that never became whole, and in which nothing was written since a time."""
    entries: dict[str, int] = {}
    for entry in files.find(FOLDER):
        folder = entry.path.rpartition("/")[0]
        entries[folder] = max(entries.get(folder, 0), entry.written_us)
    return [
        folder
        for folder, written in entries.items()
        if written < before_us and not files.exists(f"{folder}/{_MARK}")
    ]
