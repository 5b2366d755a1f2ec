"""Connections: how each is set up, and a pool of those that read."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass

from everview.engines.sqlite.circuits import totals
from everview.engines.sqlite.rows import digests
from everview.engines.sqlite.scalars import functions
from everview.engines.sqlite.scalars.functions import Failures

WAIT_SECONDS = 5.0
"""How long a writer waits for another one."""

PRAGMAS = (
    # A commit that was acknowledged survives a power loss; in WAL mode NORMAL would not promise that.
    "PRAGMA synchronous = FULL",
    # Fewer and larger checkpoints: with the default of 1000 pages one commit in a hundred waits for one.
    "PRAGMA wal_autocheckpoint = 8000",
    "PRAGMA temp_store = MEMORY",
    # Some builds of SQLite write zeros over whatever is deleted, in temporary tables, too.
    "PRAGMA secure_delete = OFF",
    # Up to 64 MiB of pages, taken as they are needed: with 32 a merge of 100,000 rows into a million takes a
    # sixth longer, with the default of 2 twice as long.
    "PRAGMA cache_size = -65536",
)
"""How every connection is set up."""

_LONGEST = 32_000
"""A log of 128 MiB."""

_READERS = ("PRAGMA query_only = ON", "PRAGMA cache_size = -8192")
"""There may be many of them, and what one reads the system's own cache has for the others."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A connection, and what became of failing calls on it."""

    connection: sqlite3.Connection
    failures: Failures


def connect(file: str, on_failure: Callable[[str], None], *, read_only: bool = False) -> Handle:
    """Open a connection with our functions on it; it may be used by one thread at a time."""
    connection = sqlite3.connect(
        file,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=1024,
    )
    try:
        handle = Handle(connection, functions.register(connection, on_failure))
        totals.register(connection, on_failure)
        digests.register(connection)
        for pragma in (*PRAGMAS, *(_READERS if read_only else ())):
            connection.execute(pragma)
        if not read_only:
            lengthen_log(connection)
    except UnicodeDecodeError as error:  # SQLite quotes what it has found in a damaged file
        connection.close()
        raise sqlite3.DatabaseError("the file has what is no text where a text should be") from error
    except BaseException:
        connection.close()
        raise
    return handle


def lengthen_log(connection: sqlite3.Connection) -> None:
    """Let the log of a large file grow to half its length before it is written back.

    A cut's rows touch pages all over views and indexes: those that several cuts touch are written back once.
    """
    (now,) = connection.execute("PRAGMA wal_autocheckpoint").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if 0 < now < (wanted := min(pages // 2, _LONGEST)):
        connection.execute(f"PRAGMA wal_autocheckpoint = {wanted}")


class Readers:
    """Connections that read: lent to a thread for one read, then kept for whoever reads next.

    So there are as many as ever read at once, however many threads come and go.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._free: list[Handle] = []
        self._closed = False
        # One at a time: of two connections that close at once neither is the last, and the WAL file stays.
        self.closing = threading.Lock()

    def borrow(self) -> Handle:
        """Take one that is free, or a new one."""
        try:
            return self._free.pop()
        except IndexError:
            return connect(self._file, _ignore, read_only=True)

    def give_back(self, handle: Handle) -> None:
        """Let others have it; its snapshot ends."""
        if handle.connection.in_transaction:
            handle.connection.execute("ROLLBACK")
        self._free.append(handle)
        if self._closed:
            self._close_free()

    def close(self) -> None:
        """Close those that are free now, and the others as they come back."""
        self._closed = True
        self._close_free()

    def _close_free(self) -> None:
        with self.closing:
            while self._free:
                self._free.pop().connection.close()


def _ignore(_what: str) -> None:
    """A view that is read fails where it failed when it was made; that was counted then."""
