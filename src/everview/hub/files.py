"""The files of a hub behind one small interface; nothing else in `hub/` touches a file system.

Paths are relative to the hub's URI, with `/` between their parts. The contract that every implementation
keeps: `create` makes a file whole or not at all, and never replaces one; what a listing shows can be read.
A draft, a file on its way to its name, begins with a dot; a listing does not show it, a search does.
"""

from __future__ import annotations

import shutil
import stat
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from everview.errors import StoreError

__all__ = ["Entry", "Files", "LocalFiles", "open_files"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: its path, its bytes, and when it was last written, in microseconds since 1970."""

    path: str
    size: int
    written_us: int


class Files(Protocol):
    """What a hub needs of a file system."""

    def create(self, path: str, content: bytes) -> bool:
        """Create a file with this content unless there is one; whether it was created."""
        ...

    def read(self, path: str) -> bytes:
        """The content of a file."""
        ...

    def list(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none when there is no such folder."""
        ...

    def find(self, folder: str) -> tuple[Entry, ...]:
        """All files in a folder and below it, drafts too, in the order of their paths."""
        ...

    def remove(self, path: str) -> None:
        """Remove a folder and all in it; nothing happens when there is none."""
        ...

    def remove_file(self, path: str) -> None:
        """Remove a file; nothing happens when there is none."""
        ...

    def uri(self, path: str) -> str:
        """Where Spark finds it."""
        ...

    def local(self, path: str) -> str:
        """A file of this machine with the same content, to be mapped into memory."""
        ...


class LocalFiles:
    """A folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, path: str, content: bytes) -> bool:
        """Write beside it, then give it its name: a link fails where a rename would replace."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.parent / f".{uuid.uuid4().hex}"
        try:
            draft.write_bytes(content)
            target.hardlink_to(draft)
        except FileExistsError:
            return False
        except OSError as error:
            raise StoreError(f"cannot write {target}: {error.strerror}", path=str(target)) from error
        finally:
            draft.unlink(missing_ok=True)
        return True

    def read(self, path: str) -> bytes:
        """The content of a file."""
        try:
            return (self._root / path).read_bytes()
        except OSError as error:
            raise StoreError(
                f"cannot read {self._root / path}: {error.strerror}", path=str(self._root / path)
            ) from error

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

    def remove(self, path: str) -> None:
        """Remove a folder and all in it."""
        shutil.rmtree(self._root / path, ignore_errors=True)

    def remove_file(self, path: str) -> None:
        """Remove a file."""
        try:
            (self._root / path).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot remove {self._root / path}: {error.strerror}", path=str(self._root / path)
            ) from error

    def uri(self, path: str) -> str:
        """A file: URI, so that Spark looks nowhere else."""
        return (self._root / path).absolute().as_uri()

    def local(self, path: str) -> str:
        """The file itself."""
        return str(self._root / path)


def open_files(uri: str | Path) -> Files:
    """The files at a folder or URI; so far `file:` and plain paths."""
    text = str(uri)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return LocalFiles(Path(unquote(parts.path)))
    if "://" in text:
        raise StoreError(f"a hub cannot be kept at {text} yet: give a folder or a file: URI", path=text)
    return LocalFiles(Path(text))
