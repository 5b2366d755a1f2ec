"""The files that one site has in a folder: its request, and the cuts that it has left for others.

::

    <folder>/<incarnation>/request                       who it is and how far it has read everybody
    <folder>/<incarnation>/<serial>-<since>-<head>.cut   everything it serves of versions (since, head]

There is always one whole cut, from 0, and behind it increments that continue it, so a newcomer finds all it
needs without asking. When the increments outweigh the whole cut a new one replaces them all: a reader never
reads more than about twice what there is, and the folder never holds more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec

from everview.replication.transports.framed import (
    TEMPORARY,
    TornFileError,
    read_frames,
    read_header,
    verify,
    write_framed,
)

__all__ = ["LAST_SERIAL", "REQUEST", "Box", "CutFile", "CutHeader", "Note", "Plan", "plan"]

REQUEST = "request"
CUT = re.compile(r"(\d{1,12})-(\d{1,18})-(\d{1,18})\.cut", re.ASCII)
LAST_SERIAL = 10**12 - 1
"""The greatest that a name has room for."""

LATEST = 2**32
"""The greatest serial that others are believed to have from us. Serials are seconds: that is in 2106."""

Serial = Annotated[int, msgspec.Meta(ge=0, le=LAST_SERIAL)]
LIGHT = 1 << 16
"""Increments that weigh less than this together are never worth a new whole cut."""

STALE_SECONDS = 3600
"""A temporary file of that age belongs to a writer that is gone."""


@dataclass(frozen=True, slots=True)
class CutFile:
    """A cut in a folder. `readers` are those whose requests its writer saw, with what it lists them for.

    It is `torn` if that can be seen by its header; the rest has not been looked at.
    """

    path: Path
    serial: int
    since: int
    head: int
    size: int
    readers: frozenset[str] = frozenset()
    standing: str = ""
    torn: bool = False


class CutHeader(msgspec.Struct, frozen=True):
    """What the file of a cut says of itself, beside its name."""

    readers: frozenset[str] = frozenset()
    standing: str = ""


class Note(msgspec.Struct, frozen=True):
    """What a site tells the others in its request, beside the request itself.

    `seen` has the last serial it took from each, and `refused` the last it refused, with its own standing
    then: as long as that is the same, so would be the answer. The others are names of files that it could
    not use: torn ones, and those for which it must first be listed, by a whole cut.
    """

    seen: dict[str, Serial] = {}
    refused: dict[str, tuple[Serial, str]] = {}
    torn: dict[str, list[str]] = {}
    unlisted: dict[str, list[str]] = {}

    def last_of(self, incarnation: str) -> int:
        """Return the last serial that was taken or refused from a site; what it writes next has a greater.

        What that cannot have written is left out: it would go on from there.
        """
        claimed = (self.seen.get(incarnation, 0), self.refused.get(incarnation, (0, ""))[0])
        return max(serial if serial <= LATEST else 0 for serial in claimed)


class Box:
    """One site's subfolder. Only that site writes in it."""

    def __init__(self, folder: Path, incarnation: str) -> None:
        self.incarnation = incarnation
        self.path = folder / incarnation

    def cuts(self) -> tuple[list[CutFile], int]:
        """Return the cuts in the order in which they were written, and how many files are none of ours."""
        found, foreign = [], 0
        for path in sorted(self.path.iterdir()):
            if path.name == REQUEST or path.name.startswith(TEMPORARY):
                continue
            match = CUT.fullmatch(path.name)
            if match is None:
                foreign += 1
                continue
            serial, since, head = map(int, match.groups())
            try:
                header = read_header(path, CutHeader)
                size = path.stat().st_size
            except FileNotFoundError:  # its writer has just replaced it
                continue
            except (TornFileError, OSError):
                found.append(CutFile(path, serial, since, head, 0, torn=True))
                continue
            found.append(CutFile(path, serial, since, head, size, header.readers, header.standing))
        found.sort(key=lambda cut: cut.serial)
        return found, foreign

    def request(self) -> tuple[Note, bytes] | None:
        """Return the site's note and request, None if there is none; TornFileError if it is not whole."""
        path = self.path / REQUEST
        try:
            note, _ = verify(path, Note)
            messages = list(islice(read_frames(path), 2))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(messages) != 1:
            raise TornFileError(f"{path} is no request")
        return note, messages[0]

    def write_request(self, note: Note, message: bytes) -> int:
        """Replace the request; return its bytes."""
        _, size = write_framed(self.path, lambda: REQUEST, msgspec.to_builtins(note), [message])
        return size

    def write_cut(self, serial: int, cut: Plan, messages: Iterator[tuple[bytes, int]]) -> CutFile:
        """Write a cut of messages, each with the head of its snapshot."""
        reached = cut.since

        def bodies() -> Iterator[bytes]:
            nonlocal reached
            for message, head in messages:
                reached = head
                yield message

        def name() -> str:
            return f"{serial:08d}-{cut.since}-{reached}.cut"

        header = {"readers": sorted(cut.readers), "standing": cut.standing}
        path, size = write_framed(self.path, name, header, bodies())
        return CutFile(path, serial, cut.since, reached, size, cut.readers, cut.standing)

    def tidy(self) -> None:
        """Remove what writers that died have left behind."""
        for path in self.path.glob(f"{TEMPORARY}*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()


@dataclass(frozen=True, slots=True)
class Plan:
    """A cut that is to be written, and the files that it makes superfluous."""

    since: int
    readers: frozenset[str]
    standing: str
    replaces: tuple[CutFile, ...] = ()


def plan(
    cuts: list[CutFile],
    head: int,
    standing: str,
    readers: Mapping[str, int | None],
    unlisted: Mapping[str, list[str]],
) -> Plan | None:
    """Decide what to write, given how far everybody has read: a whole cut, an increment, or nothing.

    `unlisted` has, for each reader, the cuts that it may not take before a whole one lists it. What was
    written under another standing may be refused for that; the whole is then written anew.
    """
    if not head and not cuts:
        return None  # who has nothing founds nothing: whoever comes with rows does
    whole = next((cut for cut in reversed(cuts) if cut.since == 0), None)
    everybody = frozenset(readers)
    if (
        whole is None
        or whole.standing != standing
        or any(_must_be_listed(whole, reader, names) for reader, names in unlisted.items())
    ):
        return Plan(0, everybody, standing, tuple(cuts))
    start = min(_reached(cuts, cursor or 0) for cursor in [0, *readers.values()])
    if start >= head and everybody <= cuts[-1].readers:
        return None
    increments = sum(cut.size for cut in cuts if cut is not whole)
    if start == 0 or increments > max(whole.size, LIGHT):
        return Plan(0, everybody, standing, tuple(cuts))
    return Plan(min(start, head), everybody, standing)


def _must_be_listed(whole: CutFile, reader: str, names: list[str]) -> bool:
    """Whether a reader needs another whole cut: this one does not list it, or is older than its complaint."""
    complained = [int(match[1]) for name in names if (match := CUT.fullmatch(name))]
    if whole.path.name in names:
        return reader not in whole.readers
    return any(whole.serial < serial <= LATEST for serial in complained)


def _reached(cuts: list[CutFile], cursor: int) -> int:
    """Return how far a reader gets with these cuts."""
    for cut in cuts:
        if cut.since <= cursor:
            cursor = max(cursor, cut.head)
    return cursor
