"""Bag relations: a row is there as often as the weights of its entries sum to (Rings §3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from everview.engines.sqlite.parts import COUNT, INTEGER, SITE, Arrival, PartColumn, value
from everview.engines.sqlite.relations.base import covers
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.relations.entries import EntriesRelation
from everview.engines.sqlite.relations.staging import stage


class BagRelation(EntriesRelation):
    """(row, dot) → weight, written once."""

    entry_columns = ("w",)

    @property
    def weight(self) -> str:
        return "w"

    def shown(self, total: str) -> str:
        return f"max({total}, 0)"

    # Writing here.

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        stage(connection, self.delta, rows, 1)
        self._write(connection, commit)
        return len(rows)

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Take away one copy for each staged row, as many as there are."""
        stage(connection, self.delta, rows, -1)
        held = f"max(ifnull((SELECT r.w FROM {self.table.name} AS r WHERE {self.same('r', 'd')}), 0), 0)"
        cells = ", ".join([*(f"d.{column}" for column in self.table.columns), f"max(d.w, -{held})"])
        connection.execute(f"INSERT INTO {self.scratch} SELECT {cells} FROM ({self.summed}) AS d")
        connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(f"INSERT INTO {self.delta} SELECT * FROM {self.scratch} WHERE w <> 0")
        connection.execute(f"DELETE FROM {self.scratch}")
        self._write(connection, commit)
        taken = connection.execute(f"SELECT ifnull(sum(w), 0) FROM {self.delta}").fetchone()[0]
        return -int(taken)

    def _write(self, connection: sqlite3.Connection, commit: Commit) -> None:
        """Store the delta: one entry for each row, under the commit's dot.

        A sum below 0, where deletions met elsewhere, shows only what rises above it.
        """
        staged, names = self.arrived, (*self.table.columns, "w", "isite", "iseq")
        connection.execute(
            f"INSERT INTO {staged} ({', '.join(names)}) "
            f"SELECT {', '.join([*self.table.columns, 'w', '?', '?'])} FROM ({self.summed})",
            (commit.site, commit.version),
        )
        connection.execute(f"DELETE FROM {self.delta}")
        commit.grown |= self._store(connection, commit.version, " DO UPDATE SET w = w + excluded.w") > 0

    def _store(self, connection: sqlite3.Connection, version: int, conflict: str) -> int:
        connection.execute(self.rows_made)
        grown = connection.execute(
            f"INSERT INTO {self.entries} (row, isite, iseq, w, version) "
            f"SELECT r.id, a.isite, a.iseq, a.w, ? FROM {self.numbered} WHERE 1 "
            f"ON CONFLICT (row, isite, iseq){conflict}",
            (version,),
        ).rowcount
        self.apply_sums(connection, f"SELECT r.id, sum(a.w) FROM {self.numbered} GROUP BY r.id")
        connection.execute(f"DELETE FROM {self.arrived}")
        return grown

    # Rows from elsewhere.

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        return (*map(value, self.relation.schema), INTEGER, SITE, COUNT)

    @property
    def origin(self) -> tuple[str, str]:
        return "isite", "iseq"

    @property
    def _sent(self) -> list[str]:
        return ["e.w", "e.isite", "e.iseq"]

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        self.arrive(connection, arrival)
        if arrival.returning:
            connection.execute(self.rows_made)
            self.note_kept(connection)
        unknown = self.held
        if arrival.covered and not arrival.joining:
            unknown = f"({self.held} OR {covers('a', own='', site='isite', seq='iseq')})"
        connection.execute(f"DELETE FROM {self.arrived} AS a WHERE {unknown}")
        return self._store(connection, arrival.version, " DO NOTHING")

    def settle(self, connection: sqlite3.Connection, commit: Commit, *, from_another: bool) -> int:
        covered = covers("e", own="", site="isite", seq="iseq")
        gone = f"FROM {self.entries} AS e WHERE {self.missing} AND {covered}"
        self.apply_sums(connection, f"SELECT row, -sum(w) {gone} GROUP BY row")
        return connection.execute(f"DELETE {gone}").rowcount

    def renumber(self, connection: sqlite3.Connection, number: int) -> None:
        """Entries name their site by its own number, so they stay as they are."""

    def retell(self, connection: sqlite3.Connection, since: int, old: int, commit: Commit) -> int:
        again = f"FROM {self.entries} WHERE isite = ? AND iseq > ?"
        count = connection.execute(
            f"INSERT INTO {self.entries} (row, isite, iseq, w, version) "
            f"SELECT row, ?, ?, sum(w), ? {again} GROUP BY row",
            (commit.site, commit.version, commit.version, old, since),
        ).rowcount
        connection.execute(f"DELETE {again}", (old, since))
        return count

    # Garbage.

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        """Forget stable pairs of one row that cancel, and entries without weight.

        Each site may choose other pairs: the sums stay the same.
        """
        with self._pairs(connection) as pairs:
            gone = connection.execute(
                f"DELETE FROM {self.entries} WHERE (row, isite, iseq) IN ({pairs})"
            ).rowcount
        if gone:
            self.sweep(connection)
        return gone, 0

    def cancels(self, connection: sqlite3.Connection) -> dict[int, int]:
        """Return the last commit of each site in what `collect` is to forget."""
        with self._pairs(connection) as pairs:
            return dict(connection.execute(f"SELECT isite, max(iseq) FROM ({pairs}) GROUP BY isite"))

    @contextmanager
    def _pairs(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Select what cancels, of what is stable: row, site and commit."""
        covered = covers("e", own="", site="isite", seq="iseq")
        order = "row_number() OVER (PARTITION BY row, w ORDER BY isite, iseq)"
        stable = f"SELECT row, isite, iseq, w, {order} AS n FROM {self.entries} AS e WHERE {covered}"
        connection.execute(f"CREATE TEMP TABLE everview_stable AS {stable}")
        connection.execute("CREATE INDEX temp.everview_stable_pair ON everview_stable (row, w, n)")
        yield (
            "SELECT a.row, a.isite, a.iseq FROM temp.everview_stable AS a WHERE a.w = 0 OR EXISTS "
            "(SELECT 1 FROM temp.everview_stable AS b WHERE b.row = a.row AND b.w = -a.w AND b.n = a.n)"
        )
        connection.execute("DROP TABLE temp.everview_stable")

    def garbage(self, connection: sqlite3.Connection) -> int:
        held = f"SELECT count(*) FROM {self.entries} WHERE w <= 0"
        return int(connection.execute(held).fetchone()[0])
