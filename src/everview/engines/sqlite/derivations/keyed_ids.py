"""Ids of a keyed relation: key → the id of its row of the greatest stamp, or that it is deleted.

An id is a whole row's, so a derivation over it lives again when the same row is written once more. A row that
another has superseded is dead whoever says so, and its derivations are forgotten without asking anyone:
should it be written again, they are derived and sent again. Only a row whose stamp lies in the future, and
whose derivations came ahead of it, is waited for.
"""

from __future__ import annotations

import sqlite3

from everview.engines.sqlite.derivations.liveness import Liveness
from everview.engines.sqlite.ids import joined
from everview.engines.sqlite.parts import (
    CHUNK_BYTES,
    COUNT,
    ID,
    OPTIONAL_ID,
    SITE,
    Chunk,
    PartColumn,
    Position,
)
from everview.engines.sqlite.relations.keyed import KeyedRelation
from everview.language.types import BIGINT, Field

KEY = (Field("key_high", BIGINT, nullable=False), Field("key_low", BIGINT, nullable=False))
ROW = (Field("row_high", BIGINT), Field("row_low", BIGINT))


class KeyedIds(Liveness):
    """A register a key, and a table of ids beside it."""

    __slots__ = ()
    lattice: KeyedRelation

    @property
    def ids(self) -> str:
        return f"{self.lattice.table.name}_ids"

    @property
    def number(self) -> str:
        return "n"

    @property
    def halves(self) -> tuple[str, str]:
        return ("high", "low")

    def dead(self, alias: str) -> str:
        return f"NOT {alias}.live"

    def naming(self, ids: str) -> str:
        return f"INSERT OR IGNORE INTO {self.ids} (high, low, live) SELECT *, 0 FROM ({ids})"

    def origin(self, connection: sqlite3.Connection, number: int) -> tuple[int, int] | None:
        found = connection.execute(
            f"SELECT r.site, r.seq FROM {self.ids} AS i CROSS JOIN {self.lattice.table.name} AS r "
            "ON r.c2 = i.high AND r.c3 = i.low AND r.alive = 1 WHERE i.n = ?",
            (number,),
        ).fetchone()
        return None if found is None else (found[0], found[1])

    @property
    def columns(self) -> tuple[PartColumn, ...]:
        return (ID, OPTIONAL_ID, COUNT, COUNT, SITE, COUNT)

    def read(
        self,
        connection: sqlite3.Connection,
        since: int,
        after: Position | None,
        limit: int,
        room: int = CHUNK_BYTES,
    ) -> Chunk:
        chunk = super().read(connection, since, after, limit, room)
        rows = [
            (key, None if high is None else joined(high, low), *rest) for key, high, low, *rest in chunk.rows
        ]
        return Chunk(rows, chunk.reached)

    def ddl(self) -> list[str]:
        table = (
            f"CREATE TABLE {self.ids} (n INTEGER PRIMARY KEY, high INTEGER NOT NULL, low INTEGER NOT NULL, "
            "live INTEGER NOT NULL, UNIQUE (high, low))"
        )
        return [*self.lattice.ddl(), table]

    @property
    def tables(self) -> tuple[str, ...]:
        return (*self.lattice.tables, self.ids)

    def note_turns(self, connection: sqlite3.Connection) -> int:
        delta = self.lattice.delta
        connection.execute(self.naming(f"SELECT c2, c3 FROM {delta} WHERE w > 0"))
        count = connection.execute(
            f"INSERT INTO {self.turned} SELECT i.n, sum(d.w) FROM {delta} AS d CROSS JOIN {self.ids} AS i "
            "ON i.high = d.c2 AND i.low = d.c3 GROUP BY i.n HAVING sum(d.w) <> 0"
        ).rowcount
        connection.execute(
            f"UPDATE {self.ids} SET live = live + t.turn FROM {self.turned} AS t WHERE {self.ids}.n = t.n"
        )
        connection.execute(f"DELETE FROM {delta}")
        return count

    def come(self, connection: sqlite3.Connection, version: int, limit: int) -> int:
        """Value what the time has come for; return how many rows grew."""
        grown = self.lattice.come(connection, version, limit)
        self._turn(connection, version)
        return grown

    def last_due(self, connection: sqlite3.Connection, limit: int) -> int:
        """Return the greatest stamp that waits and whose time has come."""
        return self.lattice.last_due(connection, limit)

    def next_time(self, connection: sqlite3.Connection) -> int | None:
        """Return the least stamp that lies in the future, if there is one."""
        return self.lattice.next_time(connection)

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        count, _ = self.lattice.collect(connection, passed)
        waiting = f"SELECT c2, c3 FROM {self.lattice.future} WHERE c2 IS NOT NULL"
        over = f"WHERE live = 0 AND (high, low) NOT IN ({waiting})"
        self.forget(connection, f"SELECT n FROM {self.ids} {over}")
        connection.execute(f"DELETE FROM {self.ids} {over}")
        return count, 0
