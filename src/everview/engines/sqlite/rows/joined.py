"""Relations of which a key shows the join of all its rows.

A write replaces the rows of its key that it sees by one row, so nearly always a key has one live row, and
that is what the plain table has. Where concurrent writers left several, all of them lie in the held table,
and the plain table has their join: no row that anybody wrote, and without a dot.
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.grouped import GroupedRows


@dataclass(frozen=True)
class JoinedRows(GroupedRows):
    """One shown row a key: the join of its live rows."""

    is_dotted = False

    @property
    def replaces(self) -> bool:
        return True

    def dot_ddl(self) -> list[str]:
        return [f"CREATE UNIQUE INDEX IF NOT EXISTS {self.table.name}_dot ON {self.table.name} (dot)"]

    # What the kinds say.

    @abstractmethod
    def _once(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Return one row a key: what writing these one after the other would leave."""

    @abstractmethod
    def _meet(self, connection: sqlite3.Connection, base: int, commit: Commit) -> None:
        """Bring staged rows d to what they and the shown rows r that they replace make."""

    @abstractmethod
    def _join(self, connection: sqlite3.Connection, version: int) -> None:
        """Put the joins of the keys of `_crowded` into the plain table; their rows are held by now."""

    def _add(self, connection: sqlite3.Connection, base: int, commit: Commit) -> int:
        """Add the staged rows whose keys are new; return how many."""
        return connection.execute(self._add_new(), (base, commit.version)).rowcount

    # Writing here.

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Replace what is seen of these keys; the delta holds what that shows."""
        rows = self._once(rows)
        self._stage(connection, rows, 1)
        ledger, partition = self.partition(connection, commit)
        base = ledger.base(partition)
        count = self._add(connection, base, commit)
        if count < len(rows):
            self._log_seen(connection, base, commit)
            self._note_old(connection, base)
            self._meet(connection, base, commit)
            connection.execute(self._replace, (base, commit.version))
            went = f"SELECT {self._listed('-1')} FROM {self.scratch}"
            connection.execute(f"INSERT INTO {self.delta} ({self._listed('w')}) {went}")
            connection.execute(f"DELETE FROM {self.scratch}")
            self.net(connection)
            came = f"SELECT count(*) FROM {self.delta} WHERE w > 0"
            count = int(connection.execute(came).fetchone()[0])
        ledger.advance(connection, partition, len(rows), commit.version)
        commit.grown = True
        return count

    @cached_property
    def _replace(self) -> str:
        cells = [f"{cell} = d.{cell}" for cell in (*self.values, *self.extras)]
        changes = ", ".join([*cells, "dot = ?1 + d.rowid", "version = ?2"])
        return f"UPDATE {self.table.name} AS r SET {changes} FROM {self.delta} AS d WHERE {self._replaced}"

    @cached_property
    def _replaced(self) -> str:
        """The condition that a staged row d replaces a shown row r: given the dot before."""
        return f"{self.on('r', 'd')} AND r.dot IS NOT ?1 + d.rowid"

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The columns that are not of the key."""
        key = self.relation.key_positions
        return tuple(name for place, name in enumerate(self.table.columns) if place not in key)

    # Rows from elsewhere.

    def _put_back(self, connection: sqlite3.Connection, version: int) -> None:
        """Put the rows of the scratch table back: those that are alone in their keys are shown."""
        moved, keys = ", ".join((*self.cells, "dot", "version")), ", ".join(self.table.key())
        several = f"IN (SELECT {keys} FROM {self._crowded})"
        connection.execute(
            f"INSERT INTO {self.table.name} ({moved}) SELECT {', '.join((*self.cells, 'dot'))}, "
            f"iif(old, version, ?) FROM {self.scratch} WHERE ({keys}) NOT {several}",
            (version,),
        )
        held = connection.execute(
            f"INSERT INTO {self.held} ({moved}) SELECT {moved} FROM {self.scratch} WHERE ({keys}) {several}"
        ).rowcount
        if held:
            self._join(connection, version)

    @property
    def _crowded(self) -> str:
        """The keys of which the scratch table has several rows, after FROM."""
        keys = ", ".join(self.table.key())
        return f"{self.scratch} GROUP BY {keys} HAVING count(*) > 1"
