"""Kinds of which a key, or a tuple, shows one row: sets, keyed and add-wins relations.

A write replaces the rows of its key that it sees. So a key has several rows only after concurrent writes, and
then the winner is in the plain table and the others are held beside it: a removal may bring one of them back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.rows.base import GONE, INCARNATION, Arrived, StoredRows, name_gone
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.ledger import REMOVED
from everview.engines.sqlite.scalars.storage import column_type

_NONE = -(1 << 62)
"""The dot before those of staged rows that get none."""


class _Seen(dict[str, tuple[str, str, str]]):
    """The statements for rows of staged keys where a condition holds: log them, log and drop those beside.

    Given are the dot before those of the staged rows, the partition and the version.
    """

    def __init__(self, rows: GroupedRows) -> None:
        self._rows = rows

    def __missing__(self, where: str) -> tuple[str, str, str]:
        rows, table, held = self._rows, self._rows.table.name, self._rows.held
        pairs = f"{rows.delta} AS d CROSS JOIN {table} AS r ON {rows.on('r', 'd')}"
        seen = f"WHERE r.dot IS NOT ?1 + d.rowid AND {where}"
        beside = f"SELECT h.dot FROM {pairs} CROSS JOIN {held} AS h ON {rows.on('h', 'r')} {seen}"
        into = f"INSERT OR IGNORE INTO {REMOVED} SELECT ?2, ?3, r.dot, {rows.term('r')} FROM"
        self[where] = (
            f"{into} {pairs} {seen} AND r.dot IS NOT NULL",
            f"{into} {held} AS r WHERE r.dot IN ({beside})",
            f"DELETE FROM {held} WHERE dot IN ({beside})",
        )
        return self[where]


@dataclass(frozen=True)
class GroupedRows(StoredRows):
    """One shown row a key at most."""

    # Tables.

    def ddl(self) -> list[str]:
        fields = [
            f"{c} {column_type(f.type)}" for c, f in zip(self.table.columns, self.table.schema, strict=True)
        ]
        fields += [f"{extra} {self.extra_type}" for extra in self.extras]
        listed = ", ".join(["dot INTEGER PRIMARY KEY", *fields, "version INTEGER NOT NULL"])
        return [
            *self.table.ddl(),
            f"CREATE TABLE {self.held} ({listed})",
            f"CREATE INDEX {self.held}_key ON {self.held} ({', '.join(self.table.key()) or '1'})",
            *(self.dot_ddl() if self.is_partitioned else ()),
        ]

    # Statements that the kinds share.

    def on(self, left: str, right: str) -> str:
        """Return the condition that two aliases have the same key."""
        if self.table.unique is None:
            return self.same(left, right)
        return " AND ".join(f"{left}.{key} = {right}.{key}" for key in self.table.key())

    @cached_property
    def _stored(self) -> str:
        return ", ".join((*self.cells, "dot", "version"))

    def _add_new(self, *extras: str) -> str:
        """The statement that adds staged rows of new keys: given the dot before, the version and more."""
        values = self._listed(*extras, "?1 + rowid", "?2")
        return f"INSERT OR IGNORE INTO {self.table.name} ({self._stored}) SELECT {values} FROM {self.delta}"

    not_its_own = "r.dot <> ?1 + d.rowid"
    """Whether the row r of a staged row d was not stored for it: given the dot before."""

    def _log_seen(self, connection: sqlite3.Connection, base: int, commit: Commit, where: str = "1") -> None:
        """Log the rows of staged keys that are replaced or removed, and forget those that are held beside."""
        _, partition = self.partition(connection, commit)
        crowded = partition.is_crowded
        if crowded is None:  # only a cut makes it so, and after a cut all partitions are read again
            crowded = partition.is_crowded = self.is_crowded(connection)
        if not partition.is_logged and not crowded:
            return
        log_shown, log_held, drop_held = self._seen[where]
        given = (base, partition.number, commit.version)
        if partition.is_logged:
            connection.execute(log_shown, given)
        if crowded:
            if partition.is_logged:
                connection.execute(log_held, given)
            connection.execute(drop_held, (base,))

    @cached_property
    def _seen(self) -> _Seen:
        return _Seen(self)

    def _note_old(self, connection: sqlite3.Connection, base: int) -> None:
        """Set the rows aside that staged rows replace."""
        old = ", ".join(f"r.{c}" for c in self.table.columns)
        connection.execute(
            f"INSERT INTO {self.scratch} ({self._listed()}) SELECT {old} FROM {self.delta} AS d "
            f"CROSS JOIN {self.table.name} AS r ON {self.on('r', 'd')} WHERE r.dot IS NOT ? + d.rowid",
            (base,),
        )

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Remove the rows of the keys that are given."""
        self._stage(connection, rows, -1)
        ledger, partition = self.partition(connection, commit)
        self._log_seen(connection, _NONE, commit)
        self._note_old(connection, _NONE)
        keys = ", ".join(self.table.key())
        count = connection.execute(
            f"DELETE FROM {self.table.name} WHERE ({keys}) IN (SELECT {keys} FROM {self.delta})"
        ).rowcount
        connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(
            f"INSERT INTO {self.delta} ({self._listed('w')}) "
            f"SELECT DISTINCT {self._listed('-1')} FROM {self.scratch}"
        )
        connection.execute(f"DELETE FROM {self.scratch}")
        if count:
            ledger.advance(connection, partition, 1, commit.version)
            commit.grown = True
        return count

    # Rows from elsewhere.

    @property
    def order(self) -> str:
        """The order in which rows r of one key win, the winner first."""
        extras = [f"r.{extra} DESC" for extra in self.extras]
        return ", ".join([*extras, f"{INCARNATION.format(dot='r.dot')} DESC", "r.dot DESC"])

    def _take(self, connection: sqlite3.Connection, before: int, arrived: Arrived) -> int:
        """Mostly every row is of a key that has none; where one is not, its key is settled."""
        staged, names = f"{self.delta} AS d WHERE d.rowid > ?1", ", ".join((*self.cells, "dot"))
        (count,) = connection.execute(f"SELECT count(*) FROM {staged}", (before,)).fetchone()
        values = ", ".join([*(f"d.{cell}" for cell in self.cells), "d.dot", "?2"])
        added = connection.execute(
            f"INSERT OR IGNORE INTO {self.table.name} ({self._stored}) SELECT {values} FROM {staged}",
            (before, arrived.version),
        ).rowcount
        if added < count:
            its_own = f"SELECT 1 FROM {self.table.name} AS r WHERE {self.on('r', 'd')} AND r.dot = d.dot"
            cells = ", ".join(f"d.{cell}" for cell in self.cells)
            connection.execute(
                f"INSERT INTO {self.scratch} ({names}, version, old) "
                f"SELECT {cells}, d.dot, ?2, 0 FROM {staged} AND NOT EXISTS ({its_own})",
                (before, arrived.version),
            )
            connection.execute(
                f"DELETE FROM {self.delta} WHERE rowid > ? AND dot IN (SELECT dot FROM {self.scratch})",
                (before,),
            )
        self._drop_dead(connection, before, arrived)
        if added < count:
            self.settle(connection, arrived.version)
        return int(count)

    def _drop_dead(self, connection: sqlite3.Connection, before: int, arrived: Arrived) -> None:
        """Take rows out of the delta that are stored and not shown."""

    def settle(self, connection: sqlite3.Connection, version: int) -> None:
        """All rows of the touched keys are taken together, and it is decided anew what they show."""
        key, name, touched = self.table.key() or ("1",), self.table.name, self.touched
        keys = ", ".join(key)
        gone = f"WHERE dot IN (SELECT dot FROM {GONE})"
        for table, where in ((self.scratch, ""), (name, gone), (self.held, gone)):
            connection.execute(f"INSERT OR IGNORE INTO {touched} SELECT {keys} FROM {table} {where}")
        of_touched = "WHERE " + " AND ".join(["1", f"({keys}) IN (SELECT * FROM {touched})"])
        connection.execute(
            f"INSERT INTO {self.delta} ({self._listed('w')}) SELECT {self._listed('-1')} FROM {name} "
            f"{of_touched} AND {self.is_shown()}"
        )
        moved = ", ".join((*self.cells, "dot", "version"))
        for table, old in ((name, 1), (self.held, 0)):
            connection.execute(
                f"INSERT INTO {self.scratch} ({moved}, old) "
                f"SELECT {moved}, {old} FROM {table} {of_touched} AND dot IS NOT NULL"
            )
            connection.execute(f"DELETE FROM {table} {of_touched}")
        connection.execute(f"DELETE FROM {self.scratch} {gone}")
        self._put_back(connection, version)
        connection.execute(
            f"INSERT INTO {self.delta} ({self._listed('w')}) SELECT {self._listed('1')} FROM {name} "
            f"{of_touched} AND {self.is_shown()}"
        )
        self.note_turns(connection)
        connection.execute(f"DELETE FROM {self.scratch}")
        connection.execute(f"DELETE FROM {touched}")
        self.net(connection)

    def decide_anew(self, connection: sqlite3.Connection, version: int) -> None:
        if self.is_crowded(connection):
            name_gone(connection, ())
            keys = ", ".join(self.table.key() or ("1",))
            connection.execute(f"INSERT OR IGNORE INTO {self.touched} SELECT {keys} FROM {self.held}")
            self.settle(connection, version)

    def note_turns(self, connection: sqlite3.Connection) -> None:
        """Note which rows of the scratch table came to be shown, or ceased to, if somebody asks by dots."""

    def _put_back(self, connection: sqlite3.Connection, version: int) -> None:
        """Put the rows of the scratch table back: a key's winner is shown, the others are held beside it."""
        name, moved = self.table.name, ", ".join((*self.cells, "dot", "version"))
        ranked = f"row_number() OVER (PARTITION BY {', '.join(self._keys_of('r'))} ORDER BY {self.order})"
        winners = (
            f"SELECT dot FROM (SELECT r.dot, {ranked} AS place FROM {self.scratch} AS r) WHERE place = 1"
        )
        connection.execute(f"UPDATE {self.scratch} SET old = old + 2 WHERE dot IN ({winners})")
        connection.execute(
            f"INSERT INTO {name} ({moved}) SELECT {', '.join((*self.cells, 'dot'))}, "
            f"iif(old = 3, version, ?) FROM {self.scratch} WHERE old >= 2",
            (version,),
        )
        connection.execute(
            f"INSERT INTO {self.held} ({moved}) SELECT {moved} FROM {self.scratch} WHERE old < 2"
        )

    def _keys_of(self, alias: str) -> list[str]:
        if self.table.unique is not None:
            return [f"{alias}.{key}" for key in self.table.key()]
        return [f"{alias}.{column}" for column in self.table.columns] or ["1"]

    def net(self, connection: sqlite3.Connection) -> None:
        if not connection.execute(f"SELECT EXISTS (SELECT 1 FROM {self.delta} WHERE w > 0)").fetchone()[0]:
            return
        group = f"SELECT min(rowid) FROM {self.delta} GROUP BY {self._listed() or '1'} HAVING sum(w) <> 0"
        connection.execute(f"DELETE FROM {self.delta} WHERE rowid NOT IN ({group})")
