"""Shelves: what each writer has in a folder. Nothing is trusted to be whole, or there at all.

::

    <folder>/<incarnation>/<serial>.all    stands for all that its writer has written there before
    <folder>/<incarnation>/<serial>.more   adds to what is in the folder

Names are for people, and for their writer's housekeeping; whether a file is taken depends on its summary.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from everview.errors import EverviewError, StoreError
from everview.replication.transports.folder.framed import (
    TEMPORARY,
    Frames,
    TornFileError,
    verify,
    write_framed,
)
from everview.replication.transports.folder.summaries import Summary

__all__ = ["ALL", "MORE", "NAME", "Filed", "Shelves", "listed"]

ALL, MORE = "all", "more"
INCARNATION = re.compile(r"[0-9a-f]{16}", re.ASCII)
NAME = re.compile(rf"(\d{{1,12}})\.({ALL}|{MORE})", re.ASCII)
LAST_SERIAL = 10**12 - 1

STALE_SECONDS = 3600
"""A temporary file of that age belongs to a writer that is gone."""

_Stamp = tuple[int, int, int]
"""Size, time and inode: a file for which these are the same is the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Filed:
    """A file in a folder, and what it says of itself."""

    path: Path
    writer: str
    serial: int
    kind: str
    size: int
    summary: Summary


class Reads(Protocol):
    """Reads the last message of a file."""

    def __call__(self, data: bytes) -> Summary: ...


Skip = Callable[[Path, Exception | None], object]
"""Told of files that are of no use, and why, if that says more than that they are torn."""


class Shelves:
    """The subfolders of a folder; what was read of a file is remembered until it changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, tuple[_Stamp, Filed]] = {}
        self._whole: dict[Path, _Stamp] = {}

    def files(self, read: Reads, skip: Skip) -> list[Filed]:
        """Return all files that are of use as far as their summaries say."""
        found: list[Filed] = []
        for shelf in sorted(self._folder.iterdir()):
            if not INCARNATION.fullmatch(shelf.name) or not _is_shelf(shelf):
                continue
            try:
                paths = sorted(shelf.iterdir())
            except FileNotFoundError:  # it has just been removed
                continue
            except OSError:
                skip(shelf, None)
                continue
            found += self._filed(paths, read, skip)
        there = {one.path for one in found}
        self._read = {path: kept for path, kept in self._read.items() if path in there}
        self._whole = {path: kept for path, kept in self._whole.items() if path in there}
        return found

    def _filed(self, paths: Iterable[Path], read: Reads, skip: Skip) -> Iterator[Filed]:
        for path in paths:
            if path.name.startswith(TEMPORARY):
                continue
            try:
                yield self._one(path, read)
            except FileNotFoundError:  # its writer has just replaced it
                continue
            except StoreError:  # its own trouble, and none of the file's
                raise
            except (TornFileError, OSError):
                skip(path, None)
            except EverviewError as error:
                skip(path, error)

    def _one(self, path: Path, read: Reads) -> Filed:
        match = NAME.fullmatch(path.name)
        if match is None:
            raise TornFileError(f"{path} is no file of ours")
        stamp = _stamp(path)
        known = self._read.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        frames = Frames(path)
        if not len(frames):
            raise TornFileError(f"{path} is empty")
        summary = read(frames[-1])
        if summary.writer != path.parent.name:
            raise TornFileError(f"{path} is another site's")
        filed = Filed(path, summary.writer, int(match[1]), match[2], stamp[0], summary)
        self._read[path] = stamp, filed
        return filed

    def verify(self, filed: Filed) -> None:
        """Read a file through; TornFileError unless every byte is what was written."""
        stamp = _stamp(filed.path)
        if self._whole.get(filed.path) != stamp:
            verify(filed.path, dict)
            self._whole[filed.path] = stamp

    def write(
        self, writer: str, serial: int, messages: Iterable[bytes], kind: Callable[[], str], read: Reads
    ) -> Filed:
        """Write a file of a writer; its kind is asked for when all messages are there."""
        shelf = self._folder / writer
        shelf.mkdir(exist_ok=True)
        path, _ = write_framed(shelf, lambda: _free(shelf, serial, kind()), {}, messages)
        self._whole[path] = _stamp(path)
        return self._one(path, read)

    def remove(self, paths: Iterable[Path]) -> None:
        """Remove files, as far as they are files and there."""
        for path in paths:
            with suppress(OSError):
                path.unlink()

    def clear(self, writer: str) -> None:
        """Remove a writer's subfolder."""
        shutil.rmtree(self._folder / writer, ignore_errors=True)

    def tidy(self, writer: str) -> None:
        """Remove what processes that died have left behind."""
        for path in (self._folder / writer).glob(f"{TEMPORARY}*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()

    def look(self, but: str) -> frozenset[tuple[str, int, int]]:
        """Return names, times and sizes of all writers' files but one's."""
        found = set()
        for shelf in listed(self._folder):
            if shelf.name == but or not INCARNATION.fullmatch(shelf.name):
                continue
            for path in listed(shelf):
                if not path.name.startswith(TEMPORARY):
                    with suppress(OSError):
                        size, when, _ = _stamp(path)
                        found.add((f"{shelf.name}/{path.name}", when, size))
        return frozenset(found)


def _stamp(path: Path) -> _Stamp:
    state = path.stat()
    return state.st_size, state.st_mtime_ns, state.st_ino


def _free(shelf: Path, serial: int, kind: str) -> str:
    """Return a name that nothing has."""
    taken = {path.stem for path in listed(shelf)}
    while f"{serial:08d}" in taken and serial < LAST_SERIAL:
        serial += 1
    return f"{serial:08d}.{kind}"


def _is_shelf(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # who reads it will see
        return True


def listed(folder: Path) -> list[Path]:
    """Return what is in a folder; nothing if it cannot be read, or is none."""
    with suppress(OSError):
        return list(folder.iterdir())
    return []
