"""Add-wins relations: a tuple is there while any of its rows lives.

An insertion replaces the rows that it sees by one of its own, and a deletion removes those it sees. So what
is inserted by one site while another deletes it stays.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.grouped import GroupedRows


@dataclass(frozen=True)
class AddWinsRows(GroupedRows):
    """Rows (tuple)."""

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        if len(rows) > 1:
            rows = list(dict.fromkeys(map(tuple, rows)))
        self._stage(connection, rows, 1)
        ledger, partition = self.partition(connection, commit)
        base = ledger.base(partition)
        count = connection.execute(self._first, (base, commit.version)).rowcount
        if count < len(rows):
            self._log_seen(connection, base, commit)
            connection.execute(self._there, (base,))
            connection.execute(self._renew, (base, commit.version))
            connection.execute(f"DELETE FROM {self.delta} WHERE w = 0")
        ledger.advance(connection, partition, len(rows), commit.version)
        commit.grown = True
        return count

    @cached_property
    def _first(self) -> str:
        return self._add_new()

    @cached_property
    def _there(self) -> str:
        """Mark staged rows whose tuple was there before."""
        name = self.table.name
        return (
            f"UPDATE {self.delta} AS d SET w = 0 WHERE EXISTS (SELECT 1 FROM {name} AS r "
            f"WHERE {self.same('r', 'd')} AND {self.not_its_own})"
        )

    @cached_property
    def _renew(self) -> str:
        return (
            f"UPDATE {self.table.name} AS r SET dot = ?1 + d.rowid, version = ?2 "
            f"FROM {self.delta} AS d WHERE d.w = 0 AND {self.same('r', 'd')}"
        )
