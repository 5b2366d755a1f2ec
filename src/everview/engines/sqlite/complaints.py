"""What SQLite complains about, as a StoreError: what happened to which file, and what to do."""

from __future__ import annotations

import sqlite3
from types import TracebackType

from everview.errors import StoreError

RESTORE = "; restore it from a backup"
"""How an error ends that nothing else helps against: who says more about it leaves it off."""

_DAMAGED = f"the file is damaged, or no SQLite file{RESTORE}"

_ADVICE: dict[int, str] = {
    sqlite3.SQLITE_BUSY: "another process is writing to it for over 5 s; try again",
    sqlite3.SQLITE_LOCKED: "another process is writing to it for over 5 s; try again",
    sqlite3.SQLITE_PERM: "it may not be written to; change its permissions",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only; change its permissions",
    sqlite3.SQLITE_FULL: "the disk is full; nothing was lost: free some space and try again",
    sqlite3.SQLITE_IOERR: "the disk failed, or has no room; nothing was committed: check it and try again",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_FORMAT: _DAMAGED,
    sqlite3.SQLITE_CANTOPEN: "the path is not a file that can be opened and written to",
    sqlite3.SQLITE_NOMEM: "there is not enough memory; nothing was committed: try again",
    sqlite3.SQLITE_TOOBIG: "a value is larger than SQLite can hold",
}
"""By SQLite's primary result code."""

_SIGNS: tuple[tuple[str, str], ...] = (
    ("closed database", "it has been closed; open it again"),
    ("decode to UTF-8", _DAMAGED),
    ("malformed", _DAMAGED),
    ("no such table", _DAMAGED),
    ("no such column", _DAMAGED),
)
"""By words of the message, where there is no code that says it."""


class Explained:
    """Turns SQLite's errors into ours; `done` is what could not be done to the file.

    A class and not a generator: a commit enters several of them, each in a third of the time.
    """

    __slots__ = ("_done", "_path")

    def __init__(self, path: str, done: str) -> None:
        self._path = path
        self._done = done

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, sqlite3.Error):
            raise StoreError(
                f"{self._path} cannot be {self._done}: {_advice(error)}", path=self._path
            ) from error


def damaged(path: str, what: str) -> StoreError:
    """The error for a file in which something is not as we left it."""
    return StoreError(f"{path} cannot be read: {what}: {_DAMAGED}", path=path)


def as_backup(error: StoreError) -> StoreError:
    """The same of a file that is itself to be restored from."""
    said = str(error).replace(_DAMAGED, "the file is damaged, or no backup of Everview's; name another")
    return StoreError(said, path=error.path)


def _advice(error: sqlite3.Error) -> str:
    text = str(error)
    # The low byte is the primary code; some errors of the module itself have none.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    said = _ADVICE.get(code) or next((advice for sign, advice in _SIGNS if sign in text), None)
    return f"{text}: {said}" if said else text
