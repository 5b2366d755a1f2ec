"""Copies of remote files on this machine, in a folder that its processes share, up to so many bytes.

A file is brought beside its name and then given it, so that it is there whole or not at all; of two processes
that want the same one the second waits for the first. When there are too many bytes, those go that nobody has
asked for longest. One that is mapped into memory stays readable when it goes, for the system keeps it until
it is unmapped; its bytes are on the disk until then, and not counted. Nothing here is worth keeping: a folder
that is lost is filled again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from everview.errors import StoreError

__all__ = ["MOST_BYTES", "SHARE", "Cache"]

MOST_BYTES = 10_000_000_000
"""How many bytes a cache has at most, unless told otherwise,"""

SHARE = 0.2
"""or this share of what the disk would have free without it, if that is less."""

_NAME = re.compile(r"[0-9a-f]{64}")
_DRAFT = re.compile(r"\.[0-9a-f]{32}")
_GIVEN_UP = 3600.0
"""After how many seconds in which nothing was written a draft is a dead process's."""

_LOCKS = 16


class Cache:
    """The copies in a folder; `limit` None leaves it to the disk."""

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self._folder = folder
        self._limit = limit

    def get(self, name: str, bring: Callable[[BinaryIO], object]) -> str:
        """The path of the copy of what has this name everywhere and for ever, brought if need be."""
        key = hashlib.sha256(name.encode()).hexdigest()
        path = self._folder / key
        if not _touched(path):
            with self._locked(f"lock-{int(key[:2], 16) % _LOCKS}"):
                if not _touched(path):
                    self._bring(path, bring)
        return str(path)

    def _bring(self, path: Path, bring: Callable[[BinaryIO], object]) -> None:
        draft = self._folder / f".{uuid.uuid4().hex}"
        try:
            with draft.open("xb") as file:
                bring(file)
                file.flush()
                os.fsync(file.fileno())  # or after a loss of power there may be a name without its content
            draft.rename(path)
        except OSError as error:
            raise StoreError(
                f"cannot keep a copy in {self._folder}: {error.strerror}; give the option cache_folder "
                "another folder, or cache_bytes fewer bytes",
                path=str(path),
            ) from error
        finally:
            draft.unlink(missing_ok=True)
        self._evict(path)

    def _evict(self, newest: Path) -> None:
        """Remove what was not asked for longest, if there is too much, and what was never finished."""
        with self._locked("lock-eviction"):
            self._sweep()
            there = sorted(self._copies(), key=lambda found: found[0])
            size = sum(found[1] for found in there)
            limit = self._most(size)
            for _, bytes_, path in there:
                if size <= limit:
                    break
                if path != newest:
                    path.unlink(missing_ok=True)
                    size -= bytes_

    def _sweep(self) -> None:
        """Remove drafts that nobody can be writing any more."""
        for path in self._folder.glob(".*"):
            with suppress(FileNotFoundError):
                if _DRAFT.fullmatch(path.name) and time.time() - path.stat().st_mtime > _GIVEN_UP:
                    path.unlink()

    def _copies(self) -> Iterator[tuple[int, int, Path]]:
        """When each was last asked for, and how large it is."""
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):
                if _NAME.fullmatch(path.name):
                    status = path.stat()
                    yield status.st_mtime_ns, status.st_size, path

    def _most(self, size: int) -> int:
        if self._limit is not None:
            return self._limit
        return min(MOST_BYTES, int(SHARE * (shutil.disk_usage(self._folder).free + size)))

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """One thread of all processes at a time."""
        self._make_folder()
        opened = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            yield
        finally:
            os.close(opened)

    def _make_folder(self) -> None:
        """Ours alone: what is mapped from here is believed."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self._folder.lstat()
        except OSError as error:
            raise StoreError(
                f"cannot make {self._folder}: {error.strerror}; give the option cache_folder another folder",
                path=str(self._folder),
            ) from error
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
            raise StoreError(
                f"{self._folder} belongs to somebody else: give the option cache_folder another folder",
                path=str(self._folder),
            )


def _touched(path: Path) -> bool:
    """Whether it is there; then it was just asked for."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True
