"""Ids of an add-wins relation: a tuple's id lives while some insertion of the tuple does."""

from __future__ import annotations

import sqlite3

from everview.engines.sqlite.derivations.liveness import Liveness
from everview.engines.sqlite.parts import COUNT, ID, SITE, PartColumn
from everview.engines.sqlite.relations.add_wins import AddWinsRelation
from everview.engines.sqlite.relations.base import covers


class AddWinsIds(Liveness):
    """The lattice's own table numbers the ids; its entries are the insertions."""

    __slots__ = ()
    lattice: AddWinsRelation

    def dead(self, alias: str) -> str:
        return f"NOT {alias}.w > 0"

    def naming(self, ids: str) -> str:
        return f"INSERT OR IGNORE INTO {self.ids} (c0, c1, w) SELECT *, 0 FROM ({ids})"

    def origin(self, connection: sqlite3.Connection, number: int) -> tuple[int, int] | None:
        found = connection.execute(
            f"SELECT isite, iseq FROM {self.lattice.entries} WHERE row = ? AND cl = 1 "
            "ORDER BY version LIMIT 1",
            (number,),
        ).fetchone()
        return None if found is None else (found[0], found[1])

    @property
    def columns(self) -> tuple[PartColumn, ...]:
        return (ID, COUNT, SITE, COUNT, SITE, COUNT)

    def note_turns(self, connection: sqlite3.Connection) -> int:
        count = connection.execute(
            f"INSERT INTO {self.turned} SELECT r.id, sum(d.w) FROM {self.lattice.delta} AS d "
            f"CROSS JOIN {self.ids} AS r ON r.c0 = d.c0 AND r.c1 = d.c1 GROUP BY r.id HAVING sum(d.w) <> 0"
        ).rowcount
        connection.execute(f"DELETE FROM {self.lattice.delta}")
        return count

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        """The lattice drops ids without insertions, so their derivations go first."""
        entries = self.lattice.entries
        self.forget(
            connection,
            f"SELECT id FROM {self.ids} WHERE w = 0 AND NOT EXISTS "
            f"(SELECT 1 FROM {entries} AS e WHERE e.row = id AND NOT (e.cl = 2 AND {covers('e')}))",
        )
        count, _ = self.lattice.collect(connection, passed)
        self.lattice.sweep(connection)
        return count, 0
