"""The file: opening, locking, transactions, and who may read while somebody writes.

One SQLite file in WAL mode. One connection writes, under a lock of this process and SQLite's own lock
between processes; every other thread reads through a connection of its own, and sees the last commit. A
database in memory has one connection for everything.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from everview.engines.sqlite import exact, functions
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.functions import Failures
from everview.engines.sqlite.migrations import FORMAT, migrate
from everview.errors import StoreError
from everview.language.program import Program

APPLICATION_ID = 0x45565657
"""'EVVW' in the file's header: what `file` and we know a store by."""

WAIT_SECONDS = 5.0
"""How long a writer waits for another one."""

MEMORY = ":memory:"


@dataclass(frozen=True, slots=True)
class Handle:
    """A connection, and what became of failing calls on it."""

    connection: sqlite3.Connection
    failures: Failures


class Store:
    """A site's database."""

    def __init__(self, path: str, program: Program | None, name: str) -> None:
        self.path = path
        self.in_memory = path == MEMORY
        self._lock = threading.RLock()
        self._readers = threading.local()
        self._handles: list[Handle] = []
        self._failed = 0
        self.closed = False
        with self._explained("opened"):
            self.writer = self._connect()
            try:
                self.program, self.name = self._recognise(program, name)
                self.engine = Engine(self.program)
                self._ready()
            except BaseException:
                self.close()
                raise

    def _connect(self, *, read_only: bool = False) -> Handle:
        if not self.in_memory and not Path(self.path).parent.is_dir():
            raise StoreError(
                f"cannot open {self.path}: there is no folder {Path(self.path).parent}; create it first",
                path=self.path,
            )
        connection = sqlite3.connect(
            self.path,
            timeout=WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=1024,
        )
        handle = Handle(connection, functions.register(connection, self._count_failure))
        exact.register(connection, self._count_failure)
        self._handles.append(handle)
        # Fewer and larger checkpoints: with the default of 1000 pages one commit in a hundred waits for one.
        connection.execute("PRAGMA wal_autocheckpoint = 8000")
        connection.execute("PRAGMA temp_store = MEMORY")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        return handle

    def _count_failure(self, _what: str) -> None:
        self._failed += 1

    def _recognise(self, program: Program | None, name: str) -> tuple[Program, str]:
        """Check whose file this is; create the tables of a new one."""
        connection = self.writer.connection
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION_ID:
            raise StoreError(
                f"{self.path} is a database of something else, not an Everview store; choose another path",
                path=self.path,
            )
        if not tables:
            if program is None:
                raise StoreError(
                    f"{self.path} is no store yet, so a program is needed to create it", path=self.path
                )
            self._create(program, name)
            return program, name
        return self._reopen(program, name)

    def _create(self, program: Program, name: str) -> None:
        connection = self.writer.connection
        if not self.in_memory:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                connection.execute(
                    "CREATE TABLE ev_store (one INTEGER PRIMARY KEY, program TEXT NOT NULL, "
                    "program_hash TEXT NOT NULL, site TEXT NOT NULL, incarnation TEXT NOT NULL, "
                    "version INTEGER NOT NULL, failures INTEGER NOT NULL)"
                )
                connection.execute(
                    "INSERT INTO ev_store VALUES (1, ?, ?, ?, ?, 0, 0)",
                    (program.text, program.hash, name, secrets.token_hex(8)),
                )
                engine = Engine(program)
                engine.prepare(connection)
                engine.create(connection)
                for table in engine.circuit.temporary:
                    connection.execute(f"DROP TABLE {table}")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _reopen(self, program: Program | None, name: str) -> tuple[Program, str]:
        connection = self.writer.connection
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > FORMAT:
            raise StoreError(
                f"{self.path} has format {version}, and this Everview knows up to {FORMAT}; "
                "upgrade Everview to open it",
                path=self.path,
            )
        migrate(connection, version)
        text, digest, site = connection.execute("SELECT program, program_hash, site FROM ev_store").fetchone()
        if program is not None and program.hash != digest:
            raise StoreError(
                f"{self.path} was made for another program (hash {digest[:12]}, not {program.hash[:12]}); "
                "open it with its own program, or choose another path",
                path=self.path,
            )
        return program or Program.parse(text), name or site

    def _ready(self) -> None:
        self.engine.prepare(self.writer.connection)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end, rolled back on any exception."""
        self._acquire()
        try:
            connection = self.writer.connection
            with self._explained("written to"):
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    if self._failed:
                        connection.execute("UPDATE ev_store SET failures = failures + ?", (self._failed,))
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    self._clear_scratch()
                    raise
                finally:
                    self._failed = 0
        finally:
            self._lock.release()

    def _acquire(self) -> None:
        self._check_open()
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise StoreError(
                f"{self.path} is being written by another thread for over {WAIT_SECONDS:g} s; try again",
                path=self.path,
            )

    def _clear_scratch(self) -> None:
        """Temporary tables are rolled back with the rest; only what was filled before BEGIN would stay."""
        for table in self.engine.circuit.temporary:
            self.writer.connection.execute(f"DELETE FROM {table}")

    def next_version(self, connection: sqlite3.Connection) -> int:
        """Number the commit that is under way."""
        return int(
            connection.execute("UPDATE ev_store SET version = version + 1 RETURNING version").fetchone()[0]
        )

    @contextmanager
    def reading(self, *, inside: bool) -> Iterator[Handle]:
        """A connection to read from: the writer's own `inside` its transaction, else one of this thread."""
        self._check_open()
        if inside or self.in_memory:
            self._acquire()
            try:
                with self._explained("read"):
                    yield self.writer
            finally:
                self._lock.release()
            return
        handle: Handle | None = getattr(self._readers, "handle", None)
        with self._explained("read"):
            if handle is None:
                handle = self._connect(read_only=True)
                self._readers.handle = handle
            yield handle

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Turn SQLite's errors into ours: what happened to which file, and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be {done}: {_advice(error)}", path=self.path) from error

    def _check_open(self) -> None:
        if self.closed:
            raise StoreError(f"{self.path} has been closed; open it again", path=self.path)

    def close(self) -> None:
        """Close all connections."""
        self.closed = True
        for handle in self._handles:
            handle.connection.close()


_ADVICE: tuple[tuple[str, str], ...] = (
    ("locked", "another process is writing to it for over 5 s; try again"),
    ("readonly", "the file or its folder is read-only; change its permissions"),
    ("full", "the disk is full; nothing was lost: free some space and try again"),
    ("not a database", "it is damaged, or no SQLite file; restore it from a backup"),
    ("malformed", "it is damaged; restore it from a backup"),
    ("unable to open", "the path is not a file that can be opened"),
    ("disk I/O", "the disk failed; nothing was committed: check the disk and try again"),
)


def _advice(error: sqlite3.Error) -> str:
    text = str(error)
    return next((f"{text}: {advice}" for sign, advice in _ADVICE if sign in text), text)
