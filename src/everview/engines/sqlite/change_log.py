"""The change log: what commits did to a relation or view, in order, for readers that come back for it.

State alone cannot be replayed: a row that was inserted and deleted leaves nothing behind. So what somebody
consumes in order is written down, in the transaction that makes the change, and kept until the slowest of its
readers has released it. Nothing is logged for what nobody has subscribed to.

Changes are numbered through all of the store's logs, in the order of commits; within a commit rows that go
come before rows that come, each in the order of `rows()`. The numbers ascend, and a log leaves numbers out.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from everview.engines.sqlite.changes import Changes
from everview.engines.sqlite.names import LOG, READERS
from everview.engines.sqlite.scalars.storage import load_rows
from everview.errors import DataError, StoreError
from everview.language.order import row_order_key

if TYPE_CHECKING:
    from everview.engines.sqlite.writing import Writing

__all__ = ["ChangeLog", "Log", "Logged"]

_READERS_DDL = (
    f"CREATE TABLE IF NOT EXISTS {READERS} (reader TEXT NOT NULL, name TEXT NOT NULL, "
    "began INTEGER NOT NULL, released INTEGER NOT NULL, PRIMARY KEY (reader, name)) WITHOUT ROWID"
)
_LOG_DDL = (
    f"CREATE TABLE IF NOT EXISTS {LOG} (name TEXT NOT NULL, number INTEGER NOT NULL, reader TEXT, "
    "weight INTEGER NOT NULL, row BLOB NOT NULL, PRIMARY KEY (name, number)) WITHOUT ROWID"
)
_DDL = (
    _READERS_DDL,
    _LOG_DDL,
    f"INSERT OR IGNORE INTO {READERS} VALUES ('', '', 0, 0)",
)
"""Under no reader's name: the next number. A row of one `reader` alone is of what was there when it came."""

_NEXT = f"SELECT released FROM {READERS} WHERE reader = ''"


class Logged(NamedTuple):
    """One change: its number in the log, the row in column order, how many copies came (+) or went (−)."""

    number: int
    row: tuple[Any, ...]
    weight: int


class Log:
    """The writing side: which names are logged, and what a transaction adds to them."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.names: frozenset[str] = frozenset()
        """What somebody reads in order."""

    def reload(self, connection: sqlite3.Connection) -> None:
        """Learn what is logged: the store was opened, or another process has written to it."""
        there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (READERS,)).fetchone()
        found = connection.execute(f"SELECT name FROM {READERS} WHERE reader <> ''") if there else ()
        self.names = frozenset(name for (name,) in found)
        for name in self.names:
            self._changes.follow(name)

    def append(self, connection: sqlite3.Connection) -> None:
        """Write down what the transaction has changed so far of what is logged."""
        for name in sorted(self.names):
            net = self._changes.net(name)
            if net:
                self._write(connection, name, net, None)

    def subscribe(self, connection: sqlite3.Connection, name: str, reader: str, rows: str | None) -> bool:
        """Add a reader, from here on or with the `rows` there are, a SELECT; False if it is one already."""
        for statement in _DDL:
            connection.execute(statement)
        added = connection.execute(
            f"INSERT OR IGNORE INTO {READERS} SELECT ?, ?, ({_NEXT}), ({_NEXT})", (reader, name)
        ).rowcount
        if added and rows is not None:
            found = connection.execute(rows).fetchall()
            self._write(connection, name, [(row[:-1], row[-1]) for row in found], reader)
        self._changes.follow(name)
        self.names |= {name}
        return added > 0

    def _write(
        self,
        connection: sqlite3.Connection,
        name: str,
        net: list[tuple[tuple[Any, ...], int]],
        reader: str | None,
    ) -> None:
        (number,) = connection.execute(_NEXT).fetchone()
        values = self._loaded(name, [row for row, _ in net])
        order = sorted(range(len(net)), key=lambda i: (net[i][1] > 0, row_order_key(values[i])))
        connection.executemany(
            f"INSERT INTO {LOG} VALUES (?, ?, ?, ?, ?)",
            [
                (name, number + place, reader, net[i][1], msgspec.msgpack.encode(net[i][0]))
                for place, i in enumerate(order)
            ],
        )
        connection.execute(f"UPDATE {READERS} SET released = ? WHERE reader = ''", (number + len(net),))

    def _loaded(self, name: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        types = [column.type for column in self._changes.engine.program.schema(name)]
        return [tuple(row) for row in load_rows(types, rows)]

    def read(
        self, connection: sqlite3.Connection, name: str, reader: str, number: int, limit: int
    ) -> list[Logged]:
        """Return changes from a number on."""
        found = connection.execute(
            f"SELECT number, weight, row FROM {LOG} WHERE name = ? AND number >= ? "
            "AND (reader IS NULL OR reader = ?) ORDER BY number LIMIT ?",
            (name, number, reader, limit),
        ).fetchall()
        rows = self._loaded(name, [tuple(msgspec.msgpack.decode(row)) for *_, row in found])
        return [Logged(at, row, weight) for (at, weight, _), row in zip(found, rows, strict=True)]


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """A reader's place in the changes of a relation or view. It may be used from any thread."""

    name: str
    reader: str
    _writing: Writing

    def read(self, number: int, limit: int) -> list[Logged]:
        """Return up to `limit` changes from a number on, 0 for the first; none if there are none yet.

        StoreError for changes that this reader has released, and for a place that the log has not reached:
        then the store was put back to an earlier state.
        """
        store = self._writing.store
        with store.reading(inside=self._writing.inside) as handle:
            connection = handle.connection
            found = connection.execute(
                f"SELECT began, released FROM {READERS} WHERE reader = ? AND name = ?",
                (self.reader, self.name),
            ).fetchone()
            if found is None:
                raise StoreError(
                    f"{self.reader} does not read the changes of {self.name} any more; subscribe again",
                    path=store.path,
                )
            (head,) = connection.execute(_NEXT).fetchone()
            began, released = found
            if not released <= max(number, began) <= head:
                what = f"end at {head}" if number > head else "were released"
                raise StoreError(
                    f"the changes of {self.name} {what}; {self.reader} cannot go on at {number}. "
                    "If the store was restored, begin anew under another reader's name",
                    path=store.path,
                )
            return self._writing.log.read(connection, self.name, self.reader, number, limit)

    def release(self, number: int) -> None:
        """Forget what lies before a number, as soon as all other readers have released it too."""
        with self._writing.store.writing() as connection:
            connection.execute(
                f"UPDATE {READERS} SET released = max(released, ?) WHERE reader = ? AND name = ?",
                (number, self.reader, self.name),
            )
            self._forget(connection)

    def cancel(self) -> None:
        """Read no more: nothing is logged for this reader."""
        with self._writing.transaction():
            connection = self._writing.store.writer.connection
            connection.execute(
                f"DELETE FROM {READERS} WHERE reader = ? AND name = ?", (self.reader, self.name)
            )
            self._forget(connection)
            self._writing.log.reload(connection)
            self._writing.commit.grown = True  # so that another process with this store looks again
        self._writing.unsubscribed(self.name)

    def _forget(self, connection: sqlite3.Connection) -> None:
        """Forget what no reader of this log will ask for again."""
        connection.execute(
            f"DELETE FROM {LOG} WHERE name = ?1 AND (number < coalesce((SELECT min(released) FROM {READERS} "
            f"WHERE name = ?1), 9223372036854775807) OR reader IS NOT NULL AND number < coalesce((SELECT "
            f"released FROM {READERS} WHERE name = ?1 AND reader = {LOG}.reader), 9223372036854775807))",
            (self.name,),
        )


def check_reader(reader: Any) -> str:
    """Return a reader's name, if it is one."""
    if not isinstance(reader, str) or not reader:
        raise DataError(f"a reader has a name, not {reader!r}", value=reader, expected="a str")
    return reader
