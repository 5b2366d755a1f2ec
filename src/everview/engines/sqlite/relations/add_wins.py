"""Add-wins relations: every insertion is an id of its own, and a deletion ends those it has seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from everview.engines.sqlite.parts import COUNT, SITE, Arrival, PartColumn, value
from everview.engines.sqlite.relations.base import covers
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.relations.entries import EntriesRelation
from everview.engines.sqlite.relations.staging import stage


class AddWinsRelation(EntriesRelation):
    """(row, insertion) → causal length: 1 while it lives, 2 when it was deleted; joined by max."""

    entry_columns = ("cl", "site", "seq")

    def shown(self, total: str) -> str:
        return f"({total} > 0)"

    # Writing here.

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Every insertion is one more; only the first makes the row appear.

        Inserting again what this very commit deleted revives the commit's own insertion: nobody has seen it.
        """
        stage(connection, self.delta, rows, 1)
        connection.execute(
            f"INSERT INTO {self.arrived} "
            f"SELECT {', '.join([*self.table.columns, '1', '?', '?', '0', '0'])} FROM ({self.summed})",
            (commit.site, commit.version),
        )
        connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(self.rows_made)
        self._change_sums(connection, "a.cl <> ifnull(e.cl, 0)")
        self._upsert(connection, commit.version, "cl <> excluded.cl")
        connection.execute(f"DELETE FROM {self.arrived}")
        commit.grown = True
        return int(connection.execute(f"SELECT count(*) FROM {self.delta}").fetchone()[0])

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        stage(connection, self.delta, rows, -1)
        connection.execute(f"DELETE FROM {self.delta} AS d WHERE NOT {self.there}")
        connection.execute(self.once)
        chosen = (
            f"SELECT r.id FROM {self.delta} AS d CROSS JOIN {self.table.name} AS r ON {self.same('r', 'd')}"
        )
        connection.execute(
            f"UPDATE {self.entries} SET cl = 2, version = ?, site = 0, seq = 0 "
            f"WHERE row IN ({chosen}) AND cl = 1",
            (commit.version,),
        )
        count = connection.execute(f"UPDATE {self.table.name} SET w = 0 WHERE id IN ({chosen})").rowcount
        commit.grown |= count > 0
        return count

    def _change_sums(self, connection: sqlite3.Connection, grows: str) -> None:
        joined = (
            f"{self.numbered} LEFT JOIN {self.entries} AS e "
            "ON e.row = r.id AND e.isite = a.isite AND e.iseq = a.iseq"
        )
        change = "sum((a.cl & 1) - (ifnull(e.cl, 0) & 1))"
        self.apply_sums(
            connection,
            f"SELECT r.id, {change} FROM {joined} WHERE {grows} GROUP BY r.id HAVING {change} <> 0",
        )

    def _upsert(self, connection: sqlite3.Connection, version: int, when: str) -> int:
        names = ("cl", "version", "site", "seq")
        return connection.execute(
            f"INSERT INTO {self.entries} (row, isite, iseq, cl, version, site, seq) "
            f"SELECT r.id, a.isite, a.iseq, a.cl, ?, a.site, a.seq FROM {self.numbered} WHERE 1 "
            f"ON CONFLICT (row, isite, iseq) DO UPDATE SET "
            f"{', '.join(f'{name} = excluded.{name}' for name in names)} WHERE {when}",
            (version,),
        ).rowcount

    # Rows from elsewhere.

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        return (*map(value, self.relation.schema), COUNT, SITE, COUNT, SITE, COUNT)

    @property
    def _sent(self) -> list[str]:
        return ["e.cl", "e.isite", "e.iseq", "e.site", "iif(e.site = 0, e.version, e.seq)"]

    def version_ddl(self) -> list[str]:
        dead = f"CREATE INDEX IF NOT EXISTS {self.entries}_dead ON {self.entries} (cl) WHERE cl = 2"
        return [*super().version_ddl(), dead]

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        self.arrive(connection, arrival)
        if arrival.covered:
            collected = f"{covers('a', own='')} AND NOT {self.held}"
            if arrival.joining:
                self.bury(connection, arrival, alive="cl = 1", change="cl = 2", collected=collected)
            else:
                connection.execute(f"DELETE FROM {self.arrived} AS a WHERE {collected}")
        connection.execute(self.rows_made)
        if arrival.returning:
            self.note_kept(connection)
        self._change_sums(connection, "a.cl > ifnull(e.cl, 0)")
        grown = self._upsert(connection, arrival.version, "excluded.cl > cl")
        connection.execute(f"DELETE FROM {self.arrived}")
        return grown

    def settle(self, connection: sqlite3.Connection, commit: Commit, *, from_another: bool) -> int:
        gone = f"FROM {self.entries} AS e WHERE {self.missing} AND {covers('e')}"
        self.apply_sums(connection, f"SELECT row, -sum(cl & 1) {gone} GROUP BY row")
        return connection.execute(f"DELETE {gone}").rowcount

    def retell(self, connection: sqlite3.Connection, since: int, old: int, commit: Commit) -> int:
        """Insertions under new ids; deletions of what others inserted under a new origin."""
        again = f"FROM {self.entries} WHERE isite = ? AND iseq > ?"
        made = connection.execute(
            f"INSERT INTO {self.entries} (row, isite, iseq, cl, version, site, seq) "
            f"SELECT row, ?, ?, 1, ?, 0, 0 {again} AND cl = 1 GROUP BY row",
            (commit.site, commit.version, commit.version, old, since),
        ).rowcount
        connection.execute(f"DELETE {again}", (old, since))
        live = f"(SELECT count(*) FROM {self.entries} AS e WHERE e.row = id AND e.cl = 1)"
        connection.execute(f"UPDATE {self.table.name} SET w = {live} WHERE w > 0")
        ended = connection.execute(
            f"UPDATE {self.entries} SET version = ?, site = 0, seq = 0 WHERE site = ? AND seq > ?",
            (commit.version, old, since),
        ).rowcount
        return made + ended

    # Garbage.

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        """Forget dead insertions; there is no floor, for an id is never used again."""
        gone = connection.execute(f"DELETE FROM {self.entries} AS e WHERE cl = 2 AND {covers('e')}").rowcount
        if gone:
            self.sweep(connection)
        return gone, 0

    def garbage(self, connection: sqlite3.Connection) -> int:
        dead = f"SELECT count(*) FROM {self.entries} WHERE cl = 2"
        return int(connection.execute(dead).fetchone()[0])
