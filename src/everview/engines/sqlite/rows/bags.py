"""Bag relations: every row counts, and a deletion removes one that it sees."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.circuits.statetable import key_terms
from everview.engines.sqlite.rows.base import GONE, Arrived, StoredRows, dots_within
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.ledger import log
from everview.engines.sqlite.scalars.storage import column_type


@dataclass(frozen=True)
class BagRows(StoredRows):
    """Rows (tuple), each as often as it was inserted."""

    # Tables.

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table.name,)

    def ddl(self) -> list[str]:
        name, schema = self.table.name, self.table.schema
        fields = [f"{c} {column_type(f.type)}" for c, f in zip(self.table.columns, schema, strict=True)]
        listed = ", ".join(["dot INTEGER PRIMARY KEY", *fields, "version INTEGER NOT NULL"])
        by = ", ".join(key_terms(schema, self.table.columns))
        return [
            f"CREATE TABLE {name} ({listed})",
            *([f"CREATE INDEX {name}_row ON {name} ({by})"] if by else []),
        ]

    def is_crowded(self, connection: sqlite3.Connection) -> bool:
        return False

    # Writing here.

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        self._stage(connection, rows, 1)
        ledger, partition = self.partition(connection, commit)
        connection.execute(
            f"INSERT INTO {self.table.name} ({self._listed('dot', 'version')}) "
            f"SELECT {self._listed('?1 + rowid', '?2')} FROM {self.delta}",
            (ledger.base(partition), commit.version),
        )
        ledger.advance(connection, partition, len(rows), commit.version)
        commit.grown = True
        return len(rows)

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Take away one copy for each row that is given, the oldest first, as many as there are."""
        copies = Counter(map(tuple, rows))
        self._stage(connection, list(copies), -1)
        ledger, partition = self.partition(connection, commit)
        if len(copies) < len(rows):
            for place, count in enumerate(copies.values(), 1):
                if count > 1:
                    connection.execute(f"UPDATE {self.delta} SET w = ? WHERE rowid = ?", (-count, place))
        connection.execute(self._choose)
        removed = f"FROM {self.table.name} AS r WHERE r.dot IN (SELECT dot FROM {self.scratch})"
        if partition.is_logged:
            rows_ = f"SELECT r.dot, {self.term('r')} AS term {removed}"
            log(connection, partition.number, commit.version, rows_)
        count = connection.execute(f"DELETE {removed.replace(' AS r', '').replace('r.', '')}").rowcount
        connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(
            f"INSERT INTO {self.delta} ({self._listed('w')}) SELECT {self._listed('-1')} FROM {self.scratch}"
        )
        connection.execute(f"DELETE FROM {self.scratch}")
        if count:
            ledger.advance(connection, partition, 1, commit.version)
            commit.grown = True
        return count

    @cached_property
    def _choose(self) -> str:
        """Set the copies aside that are to go."""
        cells = ", ".join(f"r.{c} AS {c}" for c in self.table.columns)
        ranked = "row_number() OVER (PARTITION BY d.rowid ORDER BY r.dot) AS place, -d.w AS w"
        chosen = (
            f"SELECT {', '.join(filter(None, [cells, 'r.dot AS dot', ranked]))} FROM {self.delta} AS d "
            f"CROSS JOIN {self.table.name} AS r ON {self.same('r', 'd')}"
        )
        return (
            f"INSERT INTO {self.scratch} ({self._listed('dot')}) "
            f"SELECT {self._listed('dot')} FROM ({chosen}) WHERE place <= w"
        )

    # Rows from elsewhere.

    def _take(self, connection: sqlite3.Connection, before: int, arrived: Arrived) -> int:
        return connection.execute(
            f"INSERT INTO {self.table.name} ({self._listed('dot', 'version')}) "
            f"SELECT {self._listed('dot', '?')} FROM {self.delta} WHERE rowid > ?",
            (arrived.version, before),
        ).rowcount

    def settle(self, connection: sqlite3.Connection, version: int) -> None:
        """No key has several rows."""

    def net(self, connection: sqlite3.Connection) -> None:
        summed = f"SELECT {self._listed('sum(w) AS w')} FROM {self.delta} GROUP BY {self._listed() or '1'}"
        connection.execute(
            f"INSERT INTO {self.scratch} ({self._listed('old')}) SELECT * FROM ({summed}) WHERE w <> 0"
        )
        connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(
            f"INSERT INTO {self.delta} ({self._listed('w')}) SELECT {self._listed('old')} FROM {self.scratch}"
        )
        connection.execute(f"DELETE FROM {self.scratch}")

    def all_rows(self, *, within: bool = False) -> str:
        rows = f"SELECT r.dot, {self.term('r')} AS term FROM"
        if self.is_partitioned and within:
            return f"{rows} {dots_within(self.table.name)}"
        return f"{rows} {self.table.name} AS r"


__all__ = ["GONE", "BagRows"]
