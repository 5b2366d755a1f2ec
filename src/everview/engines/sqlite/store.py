"""The file: locking, transactions, and who may read while somebody writes.

One SQLite file in WAL mode with `synchronous = FULL`: a commit is on the disk when it returns, with all
its views, and survives the death of the process and the loss of power. One connection writes, under a
lock of this process and SQLite's own lock between processes; everybody else reads through a connection
of their own, and sees the last commit. A database in memory has one connection for everything.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from everview.engines.sqlite.complaints import Explained, damaged
from everview.engines.sqlite.connections import WAIT_SECONDS, Handle, Readers, connect
from everview.engines.sqlite.environment import THE_WORLD, Environment
from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.opening import open_store
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.ledger import SITES, Ledger
from everview.engines.sqlite.stamps import StampClock
from everview.engines.sqlite.tasks import current_task
from everview.errors import StoreError
from everview.language.program import Program

MEMORY = ":memory:"


class Store:
    """A site's database."""

    def __init__(
        self,
        path: str,
        program: Program | None,
        name: str,
        *,
        environment: Environment = THE_WORLD,
        hosts: Iterable[str] | None = None,
        computes: bool = True,
    ) -> None:
        self.path = path
        self.in_memory = path == MEMORY
        # Readers connect later, when the process may be in another folder.
        self.file = path if self.in_memory else os.path.abspath(path)  # noqa: PTH100 - must not resolve links
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._task: object | None = None
        """The task that has a transaction open: others of its thread pass the lock."""
        self._snapshots = threading.local()
        self._readers = Readers(self.file)
        self._failed = 0
        self._version = -1  # not known yet
        self.looks = 0
        """How often the last commit had to be looked up, because it may be another process's."""
        self.environment = environment
        self.clock = StampClock(environment.now_us)
        self.ledger = Ledger()
        self.incarnation = ""
        """Who this is."""
        self.closed = False
        self._check_path()
        with self.explained("opened"):
            self.writer = connect(self.file, self._count_failure)
            try:
                self.engine, self.name = open_store(
                    self.writer.connection, path, program, name, environment, hosts, computes=computes
                )
                self.read_identity(self.writer.connection)
                self.engine.prepare(self.writer.connection)
            except BaseException:
                self.writer.connection.close()
                raise
        self.program = self.engine.program
        self._failed = 0

    def _check_path(self) -> None:
        folder = Path(self.file).parent
        if not self.in_memory and not folder.is_dir():
            raise StoreError(
                f"cannot open {self.path}: there is no folder {folder}; create it first", path=self.path
            )
        if not self.in_memory and Path(self.file).is_dir():
            raise StoreError(f"cannot open {self.path}: it is a folder; name a file in it", path=self.path)

    def _count_failure(self, _what: str) -> None:
        self._failed += 1

    # Writing

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end, rolled back on any exception."""
        with self.exclusive():
            connection, task = self.writer.connection, current_task()
            with self.explained("written to"):
                connection.execute("BEGIN IMMEDIATE")
            self._task = task
            try:
                yield connection
                self.check_transaction()
                with self.explained("written to"):
                    if self._failed:
                        connection.execute(f"UPDATE {STORE} SET failures = failures + ?", (self._failed,))
                    connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._failed = 0

    @contextmanager
    def statement(self) -> Iterator[None]:
        """One write within a transaction: if it fails it is undone alone, and the transaction can go on."""
        self.check_transaction()
        connection, failed = self.writer.connection, self._failed
        with self.explained("written to"):
            connection.execute("SAVEPOINT statement")
            try:
                yield
            except BaseException:
                self._failed = failed
                self.ledger.forget()
                if connection.in_transaction:
                    connection.execute("ROLLBACK TO statement")
                    connection.execute("RELEASE statement")
                raise
            connection.execute("RELEASE statement")

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Expressions that fail here were counted when their rows were made, or are only tried."""
        failed = self._failed
        try:
            yield
        finally:
            self._failed = failed

    def check_transaction(self) -> None:
        """Refuse to go on where SQLite had to undo the whole transaction, as when the disk is full."""
        if not self.writer.connection.in_transaction:
            raise StoreError(
                f"{self.path}: the transaction was undone when a write in it failed; begin it again",
                path=self.path,
            )

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads from writing; nests."""
        self.check_open()
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise StoreError(
                f"{self.path} is being written by another thread for over {WAIT_SECONDS:g} s; try again",
                path=self.path,
            )
        try:
            self.check_open()
            if self.writer.connection.in_transaction and self._task is not current_task():
                raise StoreError(
                    f"{self.path}: another task of this thread has a transaction open; to wait would stop "
                    "it, too; let it end first, or use everview.AsyncSite, whose tasks wait",
                    path=self.path,
                )
            yield
        finally:
            self._lock.release()

    def _roll_back(self) -> None:
        """Undo; the temporary tables are undone with the rest, except what was in them before."""
        connection = self.writer.connection
        self.ledger.forget()
        with suppress(sqlite3.Error):  # what went wrong is already on its way to the caller
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            for table in self.engine.circuit.temporary:
                connection.execute(f"DELETE FROM {table}")

    def begin_commit(self, connection: sqlite3.Connection) -> Commit:
        """Number the commit that is under way, and stamp it.

        The number is known unless another process has committed, or the last transaction was rolled back;
        to look for it by RETURNING would take four times as long.
        """
        with self.explained("written to"):
            advance = f"UPDATE {STORE} SET version = ?, clock = ? WHERE one = 1 AND version = ?"
            before, stamp = self.clock.last, self.clock.stamp()
            if connection.execute(advance, (self._version + 1, stamp, self._version)).rowcount == 0:
                self._version, last = connection.execute(f"SELECT version, clock FROM {STORE}").fetchone()
                self.looks += 1
                self.clock.observe(last)
                self.ledger.forget()
                self.read_identity(connection)
                before, stamp = last, self.clock.stamp()
                connection.execute(advance, (self._version + 1, stamp, self._version))
        self._version += 1
        return Commit(self._version, self.ledger, stamp, before, self.ledger.site, self.name)

    def read_identity(self, connection: sqlite3.Connection) -> None:
        """Read who this is: another process may have found that the store went back in time."""
        found = connection.execute(
            f"SELECT s.incarnation, d.number FROM {STORE} AS s "
            f"JOIN {SITES} AS d ON d.incarnation = s.incarnation AND d.partition = 0"
        ).fetchone()
        if found is None:
            raise damaged(self.path, "it does not say who it is")
        self.incarnation, number = found
        if number != self.ledger.site:
            self.ledger.forget()
            self.ledger.site = number

    def withdraw(self, connection: sqlite3.Connection) -> None:
        """Take the number back: nothing grew, and what is no news must not look like it to others."""
        self._version -= 1
        with self.explained("written to"):
            connection.execute(f"UPDATE {STORE} SET version = ?", (self._version,))

    # Reading

    @contextmanager
    def reading(self, *, inside: bool) -> Iterator[Handle]:
        """A connection to read from: the writer's own `inside` its transaction, else one that only reads."""
        snapshot: Handle | None = getattr(self._snapshots, "handle", None)
        if snapshot is not None:
            with self.explained("read"):
                yield snapshot
        elif inside or self.in_memory:
            with self.exclusive(), self.explained("read"):
                if inside:
                    self.check_transaction()
                with self.uncounted():  # only what fails in a commit is counted
                    yield self.writer
        else:
            self.check_open()
            with self.explained("read"):
                handle = self._readers.borrow()
                try:
                    yield handle
                finally:
                    self._readers.give_back(handle)

    @contextmanager
    def snapshot(self, *, inside: bool) -> Iterator[None]:
        """Let all reads of this thread see one state."""
        with self.reading(inside=inside) as handle:
            self._snapshots.handle = handle
            try:
                if not handle.connection.in_transaction:
                    if handle is self.writer:
                        self._task = current_task()
                    handle.connection.execute("BEGIN")
                    try:
                        yield
                    finally:
                        handle.connection.execute("COMMIT")
                else:
                    yield
            finally:
                self._snapshots.handle = None

    # Life

    def explained(self, done: str) -> Explained:
        """Turn SQLite's errors into ours."""
        return Explained(self.path, done)

    def check_open(self) -> None:
        """Refuse a store that was closed, or that a fork brought into another process."""
        if self.closed:
            raise StoreError(f"{self.path} has been closed; open it again", path=self.path)
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.path} was opened by another process; open it again in this one", path=self.path
            )

    def close(self) -> None:
        """Close all connections, those that are being read from when they are done."""
        if self.closed:
            return
        with self.exclusive():
            self.closed = True
            self._readers.close()
            with self._readers.closing:
                self.writer.connection.close()
