"""Set relations: a tuple's row says how often it was inserted and deleted in turn (Streams §4).

It is there while that causal length is odd. A deletion replaces the row by one of an even length, which is
held until somebody forgets it: then it is removed, like any row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.integers import within
from everview.engines.sqlite.rows.base import GONE, Arrived
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.grouped import GroupedRows
from everview.engines.sqlite.rows.ledger import PARTITIONS, SITES, log
from everview.errors import WireError
from everview.language.limits import LONGEST
from everview.language.relations import Relation


@dataclass(frozen=True)
class SetRows(GroupedRows):
    """Rows (tuple, causal length)."""

    @classmethod
    def extras_of(cls, relation: Relation) -> tuple[str, ...]:  # noqa: ARG003
        """Return the causal length."""
        return ("cl",)

    @property
    def partial(self) -> str:
        return "cl & 1"

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        self._stage(connection, rows, 1)
        ledger, partition = self.partition(connection, commit)
        base = ledger.base(partition)
        count = connection.execute(self._first, (base, commit.version)).rowcount
        if count < len(rows):
            count += self._step(connection, base, commit, "NOT r.cl & 1")
            self._drop_unchanged(connection, base)
        return self._written(connection, commit, count, len(rows))

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        self._stage(connection, rows, -1)
        ledger, partition = self.partition(connection, commit)
        count = self._step(connection, ledger.base(partition), commit, "r.cl & 1")
        if count < len(rows):
            self._drop_unchanged(connection, ledger.base(partition))
        return self._written(connection, commit, count, len(rows))

    @cached_property
    def _first(self) -> str:
        return self._add_new("1")

    @cached_property
    def _next(self) -> str:
        """The next length for the tuples that were staged, where a condition on the row r holds."""
        return (
            f"UPDATE {self.table.name} AS r SET cl = r.cl + 1, dot = ?1 + d.rowid, version = ?2 "
            f"FROM {self.delta} AS d WHERE {self.same('r', 'd')} AND "
        )

    def _step(self, connection: sqlite3.Connection, base: int, commit: Commit, where: str) -> int:
        """Replace rows by those of the next length; return how many."""
        self._log_seen(connection, base, commit, where)
        return connection.execute(self._next + where, (base, commit.version)).rowcount

    def _drop_unchanged(self, connection: sqlite3.Connection, base: int) -> None:
        """Take staged rows out of the delta for which nothing was stored."""
        own = f"SELECT 1 FROM {self.table.name} AS r WHERE {self.same('r', 'd')} AND r.dot = ? + d.rowid"
        connection.execute(f"DELETE FROM {self.delta} AS d WHERE NOT EXISTS ({own})", (base,))

    def _written(self, connection: sqlite3.Connection, commit: Commit, count: int, staged: int) -> int:
        if count:
            ledger, partition = self.partition(connection, commit)
            ledger.advance(connection, partition, staged, commit.version)
            commit.grown = True
        return count

    def ddl(self) -> list[str]:
        dead = f"CREATE INDEX {self.table.name}_dead ON {self.table.name} (version) WHERE NOT cl & 1"
        return [*super().ddl(), dead]

    def forget(
        self, connection: sqlite3.Connection, commit: Commit, own: int, others: int, limit: int
    ) -> int:
        """Remove tombstones that came up to a version, those of other stores up to another; return how many.

        Nothing is removed where this store has never written.
        """
        if not self.is_partitioned:
            return self._forget(connection, commit, own, others, limit)
        count, dead = 0, f"SELECT DISTINCT dot >> 40 FROM {self.table.name} WHERE NOT cl & 1 AND version <= ?"
        values = f"SELECT partition FROM {SITES} WHERE number IN ({dead})"
        found = connection.execute(f"SELECT value FROM {PARTITIONS} WHERE number IN ({values})", (own,))
        for (commit.value,) in found.fetchall():
            if count < limit:
                count += self._forget(connection, commit, own, others, limit - count)
        commit.value = ""
        return count

    def _forget(
        self, connection: sqlite3.Connection, commit: Commit, own: int, others: int, limit: int
    ) -> int:
        ledger, partition = self.partition(connection, commit)
        if not partition.seen:
            return 0
        name, sites = self.table.name, f"SELECT number FROM {SITES} WHERE partition = {partition.number}"
        connection.execute(f"DELETE FROM {GONE}")
        count = connection.execute(
            f"INSERT INTO {GONE} SELECT dot FROM {name} WHERE NOT cl & 1 AND version <= ? "
            f"AND (dot >> 40 = ? OR version <= ?) {f'AND dot >> 40 IN ({sites})' if partition.value else ''} "
            "LIMIT ?",
            (own, ledger.site_in(partition), others, limit),
        ).rowcount
        if not count:
            return 0
        if self.is_crowded(connection):  # what the tombstone has beaten goes with it
            connection.execute(
                f"INSERT OR IGNORE INTO {GONE} SELECT h.dot FROM {GONE} AS g CROSS JOIN {name} AS r "
                f"ON r.dot = g.dot CROSS JOIN {self.held} AS h ON {self.on('h', 'r')}"
            )
        if partition.is_logged:
            log(connection, partition.number, commit.version, self.gone_rows())
        for table in self.tables:
            connection.execute(f"DELETE FROM {table} WHERE dot IN (SELECT dot FROM {GONE})")
        ledger.advance(connection, partition, 1, commit.version)
        commit.grown = True
        return count

    def check(self, columns: Sequence[Sequence[Any]]) -> None:
        if not within(columns[-1], 1, LONGEST):
            raise WireError(f"a causal length of {self.relation.name} is beyond reason", where="value")

    def _drop_dead(self, connection: sqlite3.Connection, before: int, arrived: Arrived) -> None:
        lengths = arrived.columns[-1]
        if any(not length & 1 for length in set(lengths)):
            connection.execute(f"DELETE FROM {self.delta} WHERE rowid > ? AND NOT cl & 1", (before,))
