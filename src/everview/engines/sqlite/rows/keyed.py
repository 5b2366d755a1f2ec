"""Keyed relations: of a key's rows the one of the greatest stamp is shown; the last writer wins.

A deletion removes the rows that it sees. So an update survives a deletion that has not seen it, and a stamp
decides only between writes that had not seen each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.integers import within
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.grouped import GroupedRows
from everview.engines.sqlite.stamps import GREATEST
from everview.errors import WireError
from everview.language.relations import Relation


@dataclass(frozen=True)
class KeyedRows(GroupedRows):
    """Rows (key, values, stamp)."""

    @classmethod
    def extras_of(cls, relation: Relation) -> tuple[str, ...]:  # noqa: ARG003
        """Return the stamp."""
        return ("stamp",)

    @property
    def replaces(self) -> bool:
        return True

    def check(self, columns: Sequence[Sequence[Any]]) -> None:
        check_stamps(self.relation, columns[-1])

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Replace the rows of these keys; of several rows for one key the last counts."""
        rows = last_of(self.relation, rows)
        self._stage(connection, rows, 1)
        ledger, partition = self.partition(connection, commit)
        base, given = ledger.base(partition), (commit.stamp, commit.version)
        count = connection.execute(self._first, (base, commit.version, commit.stamp)).rowcount
        if count < len(rows):
            self._log_seen(connection, base, commit)
            self._note_old(connection, base)
            connection.execute(self._replace, (base, *given))
            connection.execute(
                f"INSERT INTO {self.delta} ({self._listed('w')}) "
                f"SELECT {self._listed('-1')} FROM {self.scratch}"
            )
            connection.execute(f"DELETE FROM {self.scratch}")
            self.net(connection)
            came = f"SELECT count(*) FROM {self.delta} WHERE w > 0"
            count = int(connection.execute(came).fetchone()[0])
        ledger.advance(connection, partition, len(rows), commit.version)
        commit.grown = True
        return count

    @cached_property
    def _first(self) -> str:
        return self._add_new("?3")

    @cached_property
    def _replace(self) -> str:
        names = (*self.cells, "dot", "version")
        values = ", ".join([*(f"d.{c}" for c in self.table.columns), "?2", "?1 + d.rowid", "?3"])
        return (
            f"INSERT INTO {self.table.name} ({', '.join(names)}) "
            f"SELECT {values} FROM {self.delta} AS d WHERE 1 "
            f"ON CONFLICT ({', '.join(self.table.key())}) DO UPDATE SET "
            f"{', '.join(f'{name} = excluded.{name}' for name in names)} WHERE dot <> excluded.dot"
        )


def check_stamps(relation: Relation, stamps: Sequence[int]) -> None:
    """Raise WireError for a stamp that no clock comes to."""
    if not within(stamps, 0, GREATEST):
        raise WireError(f"a stamp of {relation.name} is beyond reason", where="value")


def last_of(relation: Relation, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """Return the last row of each key."""
    if len(rows) < 2:
        return rows
    key = relation.key_positions
    last = {tuple(row[place] for place in key): row for row in rows}
    return list(last.values()) if len(last) < len(rows) else rows
