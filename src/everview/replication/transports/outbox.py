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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everview.replication.transports.framed import (
    TEMPORARY,
    TornFileError,
    read_frames,
    read_header,
    verify,
    write_framed,
)

__all__ = ["REQUEST", "Box", "CutFile", "Note", "Plan", "plan"]

REQUEST = "request"
CUT = re.compile(r"(\d{1,12})-(\d{1,18})-(\d{1,18})\.cut", re.ASCII)
LIGHT = 1 << 16
"""Increments that weigh less than this together are never worth a new whole cut."""

STALE_SECONDS = 3600
"""A temporary file of that age belongs to a writer that is gone."""


@dataclass(frozen=True, slots=True)
class CutFile:
    """A cut in a folder. `readers` are those whose requests its writer saw, with what it lists them for."""

    path: Path
    serial: int
    since: int
    head: int
    size: int
    readers: frozenset[str] = frozenset()
    standing: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What a site tells the others in its request, beside the request itself.

    `seen` has the last serial it took from each, and `refused` the last it refused, with its own standing
    then: as long as that is the same, so would be the answer. The others are names of files that it could
    not use: torn ones, and those for which it must first be listed, by a whole cut.
    """

    seen: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    torn: Mapping[str, list[str]] = field(default_factory=dict)
    unlisted: Mapping[str, list[str]] = field(default_factory=dict)

    def header(self) -> dict[str, Any]:
        """Return it as the header of a file."""
        return {
            "seen": dict(self.seen),
            "refused": dict(self.refused),
            "torn": dict(self.torn),
            "unlisted": dict(self.unlisted),
        }

    def last_of(self, incarnation: str) -> int:
        """Return the last serial that was taken or refused from a site; what it writes next has a greater."""
        return max(self.seen.get(incarnation, 0), self.refused.get(incarnation, (0, ""))[0])

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> Note:
        """Read it from a header; what cannot be read is left out."""
        return cls(
            {k: v for k, v in _mapping(header, "seen") if isinstance(v, int)},
            {
                k: (v[0], v[1])
                for k, v in _mapping(header, "refused")
                if isinstance(v, list) and [type(x) for x in v] == [int, str]
            },
            _names(header, "torn"),
            _names(header, "unlisted"),
        )


def _mapping(header: Mapping[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    found = header.get(name)
    return found.items() if isinstance(found, dict) else ()


def _names(header: Mapping[str, Any], name: str) -> dict[str, list[str]]:
    found = _mapping(header, name)
    return {k: [n for n in names if isinstance(n, str)] for k, names in found if isinstance(names, list)}


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
            try:
                header = read_header(path) if match else None
                size = path.stat().st_size
            except FileNotFoundError:  # its writer has just replaced it
                continue
            except (TornFileError, OSError):
                header = {}
                size = 0
            if match is None or header is None:
                foreign += 1
                continue
            serial, since, head = map(int, match.groups())
            readers = header.get("readers", [])
            known = [r for r in readers if isinstance(r, str)] if isinstance(readers, list) else []
            standing = str(header.get("standing", ""))
            found.append(CutFile(path, serial, since, head, size, frozenset(known), standing))
        found.sort(key=lambda cut: cut.serial)
        return found, foreign

    def request(self) -> tuple[Note, bytes] | None:
        """Return the site's note and request, None if there is none; TornFileError if it is not whole."""
        path = self.path / REQUEST
        try:
            verify(path)
            messages = list(read_frames(path))
            note = Note.of(read_header(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(messages) != 1:
            raise TornFileError(f"{path} is no request")
        return note, messages[0]

    def write_request(self, note: Note, message: bytes) -> int:
        """Replace the request; return its bytes."""
        _, size = write_framed(self.path, lambda: REQUEST, note.header(), [message])
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
    return any(serial > whole.serial for serial in complained)


def _reached(cuts: list[CutFile], cursor: int) -> int:
    """Return how far a reader gets with these cuts."""
    for cut in cuts:
        if cut.since <= cursor:
            cursor = max(cursor, cut.head)
    return cursor
