"""A gate on a machine that may be lost: every commit is in the store before anybody is told of it.

The gate is an SQLite file and needs a file system; the store may have none. So the file lies on the driver's
machine, and the store has what makes it again: a *generation*, which is a copy of the whole file in pieces,
and after it the frames of SQLite's write-ahead log, as many as each commit has added. A generation counts
once its head, a numbered object, is there. Restoring is SQLite's own recovery: the copy, and beside it the
frames as the log that a crash has left.

What makes that safe:

1. The log only grows within a generation: it is empty when the copy is made, and SQLite is told not to start
   it over; should it do so, its salt is another, and a new generation is made. Frames of transactions that
   were undone lie behind the last commit and are not taken.
2. A commit ends with its frames in the store, then a look for a record of a later epoch, as a write does
   (see `hub`): who takes over makes its record first, and reads the generation after it. Only then is the
   commit acknowledged.
3. When that fails the commit is in the file and not in the store. Then nothing is read from the gate or
   written to it until it is: a site that asks again must not hear that it is there already.
4. An opening goes on with the file that it finds if that is of the last generation and not behind it, and
   else restores. In both cases it makes the next generation.

A crash before a head leaves pieces that no head names, which the next opening removes; one between a commit
and its frames leaves a commit that was not acknowledged, in the file. Where the file is lost too the site
pushes it again. A restored gate is to its peers a store that was put back from a backup, and takes a new
incarnation (docs/REPLICATION.md).
"""

from __future__ import annotations

import os
import sqlite3
import struct
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from everview.engines.sqlite.names import STORE
from everview.errors import StoreError
from everview.hub.files import Files

__all__ = ["FOLDER", "LEAST_LOG", "Shipping", "restore", "ship_whole"]

FOLDER = "gate/kept"
_HEAD = ".head"
_PIECE = 64_000_000
LEAST_LOG = 64_000_000
"""From how many bytes of frames on a new generation is made, if the file itself has no more."""

_FRAME, _LOG_START = 24, 32
"""Bytes that stand before a page in the log, and before the first frame."""


class _Head(msgspec.Struct, frozen=True):
    """A generation: its name, how many bytes the copy has, and the last commit in it."""

    generation: str
    size: int
    version: int


class Shipping:
    """The generation that is being added to."""

    def __init__(self, files: Files, path: str, check: Callable[[], None]) -> None:
        self._files = files
        self._path = Path(path)
        self._check = check
        self._generation = ""
        self._size = 0
        self._shipped = 0
        self._parts = 0
        self._salt = b""
        self.is_whole = False
        """Whether the generation can be added to; else another has to be begun."""

    def begin(self, version: int) -> None:
        """Make the next generation by the file, whose log is empty."""
        numbers = _numbers(self._files)
        self._generation = uuid.uuid4().hex
        self._size = self._path.stat().st_size
        with self._path.open("rb") as file:
            place = 0
            while piece := file.read(_PIECE):
                self._files.create(f"{FOLDER}/{self._generation}/copy-{place:012}", piece)
                place += 1
        # Until the head is known to be there, or not to be, the file is of either generation.
        note = _note(self._path)
        note.write_text(f"{self._generation} {note.read_text() if note.exists() else ''}")
        head = _Head(self._generation, self._size, version)
        number = numbers[-1] + 1 if numbers else 1
        if not self._files.create(_path(number), msgspec.json.encode(head)):
            raise StoreError("another hub has taken this store over: close this one and open it again")
        self._check()
        note.write_text(self._generation)
        self._shipped, self._parts, self._salt = 0, 0, b""
        self.is_whole = True
        for old in numbers:
            self._files.remove_file(_path(old))
        for name in self._files.list(FOLDER):
            if not name.endswith(_HEAD) and name != self._generation:
                self._files.remove(f"{FOLDER}/{name}")

    def is_long(self) -> bool:
        """Whether there is more to read behind the copy than a new one would be."""
        return self._shipped > max(LEAST_LOG, self._size)

    def ship(self, version: int) -> None:
        """Bring what was committed since the last time into the store."""
        upto = _committed(self._path)
        with Path(f"{self._path}-wal").open("rb") as log:
            salt = log.read(_LOG_START)[16:24]
            if upto < self._shipped or (self._salt and salt != self._salt):
                self.is_whole = False
                return
            log.seek(self._shipped)
            content = log.read(upto - self._shipped)
        if content or upto > self._shipped:
            if len(content) != upto - self._shipped:
                raise StoreError(f"{self._path}-wal is shorter than its commits", path=str(self._path))
            path = f"{FOLDER}/{self._generation}/log-{self._parts:012}-{version}"
            # A part that was put although that failed is as good: frames are not written again.
            self._files.create(path, content)
            self._parts += 1
            self._shipped, self._salt = upto, salt
        self._check()


def ship_whole(files: Files, path: str, check: Callable[[], None]) -> None:
    """Make a generation of a file that nobody has open."""
    with closing(sqlite3.connect(path)) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        (version,) = connection.execute(f"SELECT version FROM {STORE}").fetchone()
        if busy:
            raise StoreError(f"{path} is being read by another process: try again", path=path)
        Shipping(files, path, check).begin(version)


def _committed(path: Path) -> int:
    """How many bytes of the log are of commits, as the index beside it says.

    The index is described in SQLite's document on its WAL format, section 2.1: the size of a page, where 1
    stands for 65,536, and the number of the last valid frame, in the order of the machine's bytes.
    """
    with Path(f"{path}-shm").open("rb") as index:
        page, frames = struct.unpack("=HI", index.read(20)[14:20])
    return _LOG_START + frames * (_FRAME + (65_536 if page == 1 else page)) if frames else 0


def restore(files: Files, path: str, local: int | None) -> bool:
    """Make the file by the last generation unless it is that already; `local` is its last commit.

    Whether there is a file now.
    """
    target = Path(path)
    numbers = _numbers(files)
    if not numbers:
        return local is not None
    head = msgspec.json.decode(files.read(_path(numbers[-1])), type=_Head)
    parts = [name for name in files.list(f"{FOLDER}/{head.generation}") if name.startswith("log-")]
    last = max([head.version, *(int(name.rpartition("-")[2]) for name in parts)])
    with suppress(OSError):
        if local is not None and local >= last and head.generation in _note(target).read_text().split():
            return True
    target.parent.mkdir(parents=True, exist_ok=True)
    for old in target.parent.glob(f"{target.name}*"):
        old.unlink()
    _write(files, Path(f"{path}-wal"), [f"{FOLDER}/{head.generation}/{name}" for name in parts])
    pieces = [name for name in files.list(f"{FOLDER}/{head.generation}") if name.startswith("copy-")]
    draft = Path(f"{path}.draft")
    _write(files, draft, [f"{FOLDER}/{head.generation}/{name}" for name in pieces])
    if draft.stat().st_size != head.size:
        raise StoreError(
            f"{FOLDER}/{head.generation} has {draft.stat().st_size} bytes of a file of {head.size}: put back "
            "what is missing there, or call hub.rebuild_gate()",
            path=FOLDER,
        )
    draft.rename(target)  # a file of this machine; if this breaks off it is restored again
    return True


def _write(files: Files, target: Path, paths: list[str]) -> None:
    with target.open("wb") as file:
        for path in paths:
            file.write(files.read(path))
        file.flush()
        os.fsync(file.fileno())


def _note(path: Path) -> Path:
    """Beside the gate: of which generations it may be."""
    return Path(f"{path}-generation")


def _path(number: int) -> str:
    return f"{FOLDER}/{number:012}{_HEAD}"


def _numbers(files: Files) -> list[int]:
    return [int(name.removesuffix(_HEAD)) for name in files.list(FOLDER) if name.endswith(_HEAD)]
