"""Ids of a set relation: id → causal length, alive while it is odd."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cached_property

from everview.engines.sqlite.derivations.liveness import Liveness
from everview.engines.sqlite.parts import COUNT, ID, SITE, Arrival, PartColumn, Row
from everview.engines.sqlite.relations.base import covers
from everview.engines.sqlite.relations.sets import LENGTHS, SetRelation
from everview.engines.sqlite.relations.staging import each_once, pour, stage


class NumberedSet(SetRelation):
    """A set of numbered ids. Length 0 is an id of which nothing is known but that a derivation names it."""

    @property
    def grown(self) -> str:
        """Temporary: number, new length and origin of known ids that grew, and how they turned."""
        return f"{self.arrived}_grown"

    @cached_property
    def place(self) -> tuple[str, ...]:
        return ("id",)

    def version_ddl(self) -> list[str]:
        name = self.table.name
        return [
            f"CREATE INDEX IF NOT EXISTS {name}_version ON {name} (version)",
            f"CREATE INDEX IF NOT EXISTS {name}_dead ON {name} (cl) WHERE NOT cl & 1",
        ]

    def _insert_new(self, connection: sqlite3.Connection, rows: Sequence[Row], version: int) -> int:
        """Add ids that are not known yet; return how many."""
        into = f"INSERT OR IGNORE INTO {self.table.name} (version, c0, cl, site, seq)"
        return pour(connection, lambda values: f"{into} {values}", rows, version)

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Ids that are new have no derivations yet, so only those that are known can turn.

        Mostly all of a cut are new, or all are known; which of the two is tried first, the first one says.
        """
        rows, count = each_once(arrival.rows, LENGTHS, -3), 0
        plain = arrival.returning or not arrival.covered
        if plain and not arrival.returning and rows[0][1] == 1:
            count = self._insert_new(connection, rows, arrival.version)
            if count == len(rows):
                return count
        stage(connection, self.arrived, rows)
        staged = len(rows)
        if not plain:
            held = f"EXISTS (SELECT 1 FROM {self.table.name} AS r WHERE r.c0 = a.c0 AND r.cl > 0)"
            staged -= connection.execute(
                f"DELETE FROM {self.arrived} AS a WHERE {covers('a', own='')} AND NOT {held}"
            ).rowcount
        grown = connection.execute(
            f"INSERT INTO {self.grown} SELECT r.id, a.cl, a.site, a.seq, (a.cl & 1) - (r.cl & 1) "
            f"FROM {self.arrived} AS a CROSS JOIN {self.table.name} AS r ON r.c0 = a.c0 AND a.cl > r.cl"
        ).rowcount
        if count + grown < staged:
            count += connection.execute(
                f"INSERT OR IGNORE INTO {self.table.name} (c0, cl, version, site, seq) "
                f"SELECT c0, cl, ?, site, seq FROM {self.arrived}",
                (arrival.version,),
            ).rowcount
        count += connection.execute(
            f"UPDATE {self.table.name} SET cl = g.cl, version = ?, site = g.site, seq = g.seq "
            f"FROM {self.grown} AS g WHERE {self.table.name}.id = g.n",
            (arrival.version,),
        ).rowcount
        connection.execute(f"DELETE FROM {self.arrived}")
        return count

    @property
    def forgettable(self) -> str:
        """The numbers of ids that are dead and stable, or of which nothing is known."""
        return f"SELECT r.id FROM {self.table.name} AS r WHERE NOT r.cl & 1 AND (r.cl = 0 OR {covers('r')})"


class SetIds(Liveness):
    """The lattice's own table numbers the ids."""

    __slots__ = ()
    lattice: NumberedSet

    def dead(self, alias: str) -> str:
        return f"NOT {alias}.cl & 1"

    def naming(self, ids: str) -> str:
        into = f"{self.ids} (c0, cl, version, site, seq)"
        return f"INSERT OR IGNORE INTO {into} SELECT *, 0, 0, 0, 0 FROM ({ids})"

    def origin(self, connection: sqlite3.Connection, number: int) -> tuple[int, int] | None:
        found = connection.execute(
            f"SELECT site, seq FROM {self.ids} WHERE id = ? AND cl > 0", (number,)
        ).fetchone()
        return None if found is None else (found[0], found[1])

    @property
    def columns(self) -> tuple[PartColumn, ...]:
        return (ID, COUNT, SITE, COUNT)

    def note_turns(self, connection: sqlite3.Connection) -> int:
        count = connection.execute(
            f"INSERT INTO {self.turned} SELECT n, turn FROM {self.lattice.grown} WHERE turn <> 0"
        ).rowcount
        connection.execute(f"DELETE FROM {self.lattice.grown}")
        return count

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        self.forget(connection, self.lattice.forgettable)
        gone = f"DELETE FROM {self.ids} WHERE id IN ({self.lattice.forgettable})"
        return connection.execute(gone).rowcount, 0
