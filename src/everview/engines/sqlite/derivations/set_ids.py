"""Ids of a set relation: id → causal length, alive while it is odd."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import cached_property

from everview.engines.sqlite.derivations.liveness import Fresh, Liveness
from everview.engines.sqlite.ids import ids_of
from everview.engines.sqlite.parts import COUNT, ID, SITE, Arrival, PartColumn
from everview.engines.sqlite.relations.base import covers
from everview.engines.sqlite.relations.sets import SetRelation
from everview.engines.sqlite.relations.staging import Columns, each_once, pour, stage_columns


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

    def insert_new(self, connection: sqlite3.Connection, columns: Columns, version: int) -> tuple[int, int]:
        """Add ids that are not known yet; return how many, and the number of the first.

        If all are new, their numbers follow each other.
        """
        into = f"INSERT OR IGNORE INTO {self.table.name} (version, id, c0, c1, cl, site, seq)"
        (last,) = connection.execute(f"SELECT ifnull(max(id), 0) FROM {self.table.name}").fetchone()
        numbers = range(last + 1, last + 1 + len(columns[0]))
        return pour(connection, lambda rows: f"{into} {rows}", (numbers, *columns), version), last + 1

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Ids that are new have no derivations yet, so only those that are known can turn."""
        stage_columns(connection, self.arrived, arrival.columns)
        staged, count = len(arrival), 0
        if arrival.covered and not arrival.returning:
            staged -= connection.execute(
                f"DELETE FROM {self.arrived} AS a WHERE {covers('a', own='')} AND NOT EXISTS "
                f"(SELECT 1 FROM {self.table.name} AS r WHERE {self.same('r', 'a')} AND r.cl > 0)"
            ).rowcount
        grown = connection.execute(
            f"INSERT INTO {self.grown} SELECT r.id, a.cl, a.site, a.seq, (a.cl & 1) - (r.cl & 1) "
            f"FROM {self.arrived} AS a CROSS JOIN {self.table.name} AS r "
            f"ON {self.same('r', 'a')} AND a.cl > r.cl"
        ).rowcount
        if grown < staged:
            count += connection.execute(
                f"INSERT OR IGNORE INTO {self.table.name} (c0, c1, cl, version, site, seq) "
                f"SELECT c0, c1, cl, ?, site, seq FROM {self.arrived}",
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

    def merge_ids(self, connection: sqlite3.Connection, arrival: Arrival, stored: Arrival) -> int:
        """Mostly all of a cut are new, or all are known: which is tried first, the first of them says."""
        columns, count = each_once(stored.columns, (0, 1), 2), 0
        if not arrival.covered and not arrival.returning and columns[2][0] == 1:
            count, first = self.lattice.insert_new(connection, columns, arrival.version)
            if count == len(arrival):
                ids, lengths = ids_of(arrival.columns[0]), arrival.columns[1]
                even = any(not length & 1 for length in set(lengths))
                dead = (
                    [p for p, length in zip(ids.places, lengths, strict=True) if not length & 1]
                    if even
                    else []
                )
                self.fresh = Fresh(ids, first, dead)
                return count
        return count + self.lattice.merge(connection, replace(stored, columns=columns))

    def dead(self, alias: str) -> str:
        return f"NOT {alias}.cl & 1"

    def naming(self, ids: str) -> str:
        into = f"{self.ids} (c0, c1, cl, version, site, seq)"
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
