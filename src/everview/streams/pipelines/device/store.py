"""The file of a pipeline: SQLite in WAL mode; a commit is on the disk when it returns, whole."""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from everview.engines.sqlite.complaints import Explained
from everview.engines.sqlite.connections import PRAGMAS, WAIT_SECONDS
from everview.errors import StoreError

FORMAT = 1
MEMORY = ":memory:"

_SCHEMA = """
CREATE TABLE pipeline (
    one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL, incarnation TEXT NOT NULL,
    commits INTEGER NOT NULL);
CREATE TABLE stages (
    name TEXT PRIMARY KEY, signature TEXT NOT NULL, waiting INTEGER NOT NULL, fired REAL NOT NULL,
    sent INTEGER NOT NULL) WITHOUT ROWID;
-- How far each producer of a source has been taken in.
CREATE TABLE offsets (
    source TEXT, producer TEXT, position INTEGER NOT NULL, PRIMARY KEY (source, producer)) WITHOUT ROWID;
-- Rows of a relation or view that have been taken in, and how often.
CREATE TABLE consumed (
    source TEXT, element BLOB, w INTEGER NOT NULL, PRIMARY KEY (source, element)) WITHOUT ROWID;
-- Deltas that were taken in: runs of numbers for each of their sources.
CREATE TABLE dots (
    stage TEXT, source TEXT, runs BLOB NOT NULL, PRIMARY KEY (stage, source)) WITHOUT ROWID;
-- Deltas that were closed here and are not acknowledged.
CREATE TABLE outbox (
    stage TEXT, number INTEGER, body BLOB NOT NULL, PRIMARY KEY (stage, number)) WITHOUT ROWID;
CREATE TABLE aggregates (
    stage TEXT, waiting INTEGER, n INTEGER NOT NULL, body BLOB, PRIMARY KEY (stage, waiting)) WITHOUT ROWID;
"""


def connect(path: str) -> sqlite3.Connection:
    """Open a connection that is used by one thread at a time."""
    connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma)
        connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        connection.close()
        raise
    return connection


class Store:
    """One connection, and one transaction at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._closed = False
        if path != MEMORY and not Path(path).absolute().parent.is_dir():
            raise StoreError(f"cannot open {path}: there is no folder for it; create it first", path=path)
        with self.explained("opened"):
            self.connection = connect(path if path == MEMORY else os.path.abspath(path))  # noqa: PTH100
        try:
            with self.transaction():
                self._prepare()
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self) -> None:
        tables = {name for (name,) in self.connection.execute("SELECT name FROM sqlite_master")}
        if not tables:
            for table in _SCHEMA.split(";"):
                self.connection.execute(table)
            self.connection.execute("INSERT INTO pipeline VALUES (1, ?, ?, 0)", (FORMAT, uuid.uuid4().hex))
        elif "pipeline" not in tables:
            raise StoreError(f"{self.path} is no pipeline's file; name another one", path=self.path)
        (number,) = self.connection.execute("SELECT format FROM pipeline").fetchone()
        if number != FORMAT:
            raise StoreError(
                f"{self.path} has the format {number}, and this version knows {FORMAT}; update everview",
                path=self.path,
            )

    @property
    def incarnation(self) -> str:
        """Under which name this file's deltas go."""
        return str(self.connection.execute("SELECT incarnation FROM pipeline").fetchone()[0])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing."""
        with self.locked() as connection:
            if connection.in_transaction:
                raise StoreError(f"{self.path}: a commit is under way in this thread", path=self.path)
            with self.explained("written to"):
                connection.execute("BEGIN IMMEDIATE")
            try:
                with self.explained("written to"):
                    yield connection
                    connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # what went wrong is on its way to the caller
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def locked(self) -> Iterator[sqlite3.Connection]:
        """Keep other threads out."""
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.path} has been closed; open it again", path=self.path)
            yield self.connection

    def explained(self, done: str) -> Explained:
        """Turn SQLite's errors into ours."""
        return Explained(self.path, done)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self.connection.close()
