"""The files of a hub in a folder of this machine."""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from everview.errors import StoreError
from everview.hub.files.interface import Entry, LockedError

__all__ = ["LocalFiles"]

_DRAFT = re.compile(r"\.[0-9a-f]{32}")
_NO_LOCKS = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS)


class LocalFiles:
    """A folder of this machine."""

    def __init__(self, root: Path, hadoop: Mapping[str, str] | None = None) -> None:
        self._root = root.absolute()  # tasks have another working folder
        self._hadoop = dict(hadoop or {})

    def create(self, path: str, content: bytes) -> bool:
        """Write beside it, then give it its name: a link fails where a rename would replace."""
        target = self._root / path
        draft = target.parent / f".{uuid.uuid4().hex}"
        try:
            self._make_folder(target.parent)
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            target.hardlink_to(draft)
        except FileExistsError:
            return False
        except OSError as error:
            raise StoreError(f"cannot write {target}: {error.strerror}", path=str(target)) from error
        finally:
            draft.unlink(missing_ok=True)
        _sync(target.parent)
        return True

    def copy(self, path: str, target: str) -> None:
        """Give it a second name: a file never changes, so both are as good as two."""
        place, goal = self._root / path, self._root / target
        try:
            self._make_folder(goal.parent)
            goal.hardlink_to(place)
        except FileExistsError:
            return
        except OSError as error:
            raise StoreError(f"cannot copy {place} to {goal}: {error.strerror}", path=str(place)) from error
        _sync(goal)
        _sync(goal.parent)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder and those above it, each of which is to last."""
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        try:
            return (self._root / path).read_bytes()
        except OSError as error:
            raise StoreError(
                f"cannot read {self._root / path}: {error.strerror}", path=str(self._root / path)
            ) from error

    def open(self, path: str) -> BinaryIO:
        """The file itself."""
        return (self._root / path).open("rb")

    def list(self, folder: str) -> list[str]:
        """The names in a folder, without drafts."""
        place = self._root / folder
        if not place.is_dir():
            return []
        return sorted(entry.name for entry in place.iterdir() if not entry.name.startswith("."))

    def find(self, folder: str) -> tuple[Entry, ...]:
        """All files in a folder and below it."""
        found = []
        for place in (self._root / folder).rglob("*"):
            try:
                status = place.lstat()
            except FileNotFoundError:  # gone since it was listed
                continue
            if not stat.S_ISDIR(status.st_mode):
                path = place.relative_to(self._root).as_posix()
                found.append(Entry(path, status.st_size, status.st_mtime_ns // 1000))
        return tuple(sorted(found, key=lambda entry: entry.path))

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return (self._root / path).exists()

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and all in it; that it lasts is not promised."""
        place = self._root / path
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)

    def settle(self, folder: str) -> None:
        """Every file and folder in it, and its name, and those of the folders above it."""
        place = self._root / folder
        for path in place.rglob("*"):
            _sync(path)
        _sync(place)
        while place != self._root:
            place = place.parent
            _sync(place)

    def sweep(self, folder: str) -> None:
        """Remove the drafts."""
        for draft in (self._root / folder).glob(".*"):
            if _DRAFT.fullmatch(draft.name):
                draft.unlink(missing_ok=True)

    def lock(self, path: str, owner: bytes) -> Callable[[], object] | None:
        """A lock of the system's, which gives it back when the process dies, however it does."""
        target = self._root / path
        try:
            self._make_folder(target.parent)
            opened = os.open(target, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"cannot write {target}: {error.strerror}", path=str(target)) from error
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(opened, 0)
            os.pwrite(opened, owner, 0)
        except BlockingIOError as error:
            held = os.pread(opened, 4096, 0)
            os.close(opened)
            raise LockedError(held) from error
        except OSError as error:
            os.close(opened)
            if error.errno in _NO_LOCKS:
                return None
            raise StoreError(f"cannot lock {target}: {error.strerror}", path=str(target)) from error
        return functools.partial(_unlock, opened)

    def remove_file(self, path: str) -> None:
        """Remove a file."""
        try:
            (self._root / path).unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise StoreError(
                f"cannot remove {self._root / path}: {error.strerror}", path=str(self._root / path)
            ) from error

    def local(self, path: str) -> str:
        """The file itself."""
        return str(self._root / path)

    def near(self) -> LocalFiles:
        """They are."""
        return self

    def uri(self, path: str) -> str:
        """A file: URI, so that Spark looks nowhere else."""
        return (self._root / path).as_uri()

    def hadoop(self) -> Mapping[str, str]:
        """What the user gave for it."""
        return self._hadoop

    def redacted(self, text: str) -> str:
        """There is nothing secret."""
        return text

    def delta(self, path: str) -> tuple[str, dict[str, str] | None]:
        """As for Spark."""
        return self.uri(path), None


def _sync(path: Path) -> None:
    """Have the system write out a file, or the names in a folder."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _unlock(opened: int) -> None:
    """Unlocked before it is closed: a process that was forked meanwhile has it open too."""
    fcntl.flock(opened, fcntl.LOCK_UN)
    os.close(opened)
