"""What a hub needs of a file system: little enough that an object store has it.

Paths are relative to the hub's URI, with `/` between their parts. The contract that every implementation
keeps: `create` makes a file whole or not at all, and never replaces one; what it made outlasts a loss of
power, and so what is created after it is never there alone; what a listing shows can be read, and a listing
shows all that was created before it. Nothing is renamed, and a file that has its name never changes. A draft,
a file on its way to its name, begins with a dot; a listing does not show it, a search does.

Errors of the file system are a StoreError, those that pass by only after they were tried again for a while.
An implementation can be pickled: tasks of Spark get it from the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol

__all__ = ["Entry", "Files", "LockedError"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: its path, its bytes, and when it was last written, in microseconds since 1970."""

    path: str
    size: int
    written_us: int


class LockedError(Exception):
    """A file is locked by another, who wrote `owner` into it."""

    def __init__(self, owner: bytes) -> None:
        self.owner = owner
        super().__init__("locked")


class Files(Protocol):
    """What a hub needs of a file system."""

    def create(self, path: str, content: bytes) -> bool:
        """Create a file with this content unless there is one; whether it was created, by this very call."""
        ...

    def copy(self, path: str, target: str) -> None:
        """Create a file with the content of another; one that is there has this content already."""
        ...

    def read(self, path: str) -> bytes:
        """The content of a file."""
        ...

    def open(self, path: str) -> BinaryIO:
        """A file to read parts of; FileNotFoundError when there is none."""
        ...

    def list(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none when there is no such folder."""
        ...

    def find(self, folder: str) -> tuple[Entry, ...]:
        """All files in a folder and below it, drafts too, in the order of their paths."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder. A folder in which nothing is need not be there."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and all in it; nothing happens when there is none."""
        ...

    def remove_file(self, path: str) -> None:
        """Remove a file; nothing happens when there is none."""
        ...

    def settle(self, folder: str) -> None:
        """Make what others, such as Spark, have written into a folder outlast a loss of power."""
        ...

    def sweep(self, folder: str) -> None:
        """Remove from a folder what a crash has left of files that were never made."""
        ...

    def lock(self, path: str, owner: bytes) -> Callable[[], object] | None:
        """Lock a file until the answer is called or this process ends; None where there are no locks.

        LockedError when another has it, be it in this process.
        """
        ...

    def local(self, path: str) -> str:
        """A file of this machine with the same content, to be mapped into memory.

        It may be gone again before it is mapped; then it is asked for once more. Once mapped it stays.
        """
        ...

    def near(self) -> Files:
        """Files of this machine, for a database; these ones, or ones that may be lost with the machine."""
        ...

    def uri(self, path: str) -> str:
        """Where Spark finds it."""
        ...

    def hadoop(self) -> Mapping[str, str]:
        """What Spark's session has to be told so that it finds it; there are secrets among it."""
        ...

    def redacted(self, text: str) -> str:
        """A text of Spark's or of `deltalake`'s without what is secret."""
        ...

    def delta(self, path: str) -> tuple[str, dict[str, str] | None]:
        """Where `deltalake` finds it, and what it has to be told for that; there are secrets among it."""
        ...
