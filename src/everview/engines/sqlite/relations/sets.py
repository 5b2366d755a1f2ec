"""Set relations: a tuple has a causal length, and is there while it is odd (Streams §4)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from everview.engines.sqlite.measuring import Bound
from everview.engines.sqlite.parts import (
    CHUNK_BYTES,
    COUNT,
    SITE,
    Arrival,
    Chunk,
    PartColumn,
    Position,
    value,
)
from everview.engines.sqlite.relations.base import StoredRelation, covers, read_by_version
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.relations.staging import each_once, stage, stage_columns
from everview.errors import DataError
from everview.language.limits import HIGHEST_FLOOR, LONGEST


class SetRelation(StoredRelation):
    """Row → causal length, joined by max."""

    @property
    def partial(self) -> str:
        return "cl & 1"

    # Writing here.

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        stage(connection, self.delta, rows, 1)
        return self._write(connection, len(rows), commit, odd=True)

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        stage(connection, self.delta, rows, -1)
        return self._write(connection, len(rows), commit, odd=False)

    @cached_property
    def _to_odd(self) -> str:
        return self.table.upsert(
            f"SELECT {self.listed}, ?, ?, 0, 0 FROM {self.delta}",
            ["cl = max(cl + 1, ?)", "version = excluded.version", "site = 0", "seq = 0"],
            unless=f"cl & 1 OR cl >= {LONGEST}",
        )

    @cached_property
    def _to_even(self) -> str:
        key = ", ".join(self.table.key())
        return (
            f"UPDATE {self.table.name} SET cl = max(cl + 1, ?), version = ?, site = 0, seq = 0 "
            f"WHERE ({key}) IN (SELECT {key} FROM {self.delta}) AND cl & 1"
        )

    def _write(self, connection: sqlite3.Connection, staged: int, commit: Commit, *, odd: bool) -> int:
        """Mostly every staged row changes, and then they are the change; otherwise sort them out first.

        Of a single row the number of changed rows says all, so nothing needs to be taken back. A tuple that
        is not known starts above the floor: it may have been here and collected. One that is known goes above
        what another group may have collected of it before it came to this one; a cut from there has brought
        the floor, too, and who has only heard of it has seen nothing that it could lose to.
        """
        floor, apart = (_even(floors.get(self.relation.name, 0)) for floors in (commit.floors, commit.apart))
        apart = min(apart, floor)
        grow: tuple[Any, ...] = (self._to_even, (apart + 2, commit.version))
        if odd:
            grow = (self._to_odd, (floor + 1, commit.version, apart + 1))
        if staged == 1:
            if connection.execute(*grow).rowcount == 1:
                commit.grown = True
                return 1
            if odd:
                self._check_lives(connection)
            connection.execute(f"DELETE FROM {self.delta}")
            return 0
        connection.execute("SAVEPOINT attempt")
        if connection.execute(*grow).rowcount == staged:
            connection.execute("RELEASE attempt")
            commit.grown = True
            return staged
        connection.execute("ROLLBACK TO attempt")
        connection.execute("RELEASE attempt")
        unless = "" if odd else "NOT "
        connection.execute(f"DELETE FROM {self.delta} AS d WHERE {unless}{self.there}")
        connection.execute(self.once)
        if odd:
            self._check_lives(connection)
        count = connection.execute(*grow).rowcount
        commit.grown |= count > 0
        return count

    def _check_lives(self, connection: sqlite3.Connection) -> None:
        """Raise DataError if a staged row is deleted for good: nobody would take a longer life than this."""
        ended = (
            f"EXISTS (SELECT 1 FROM {self.table.name} AS r WHERE {self.same('r', 'd')} AND cl >= {LONGEST})"
        )
        found = connection.execute(f"SELECT {self.listed} FROM {self.delta} AS d WHERE {ended}").fetchone()
        if found is not None:
            raise DataError(
                f"{self.relation.name} has had this row as often as can be counted, and it is deleted for "
                f"good: {found}; somebody wrote it with a causal length that is beyond reason"
            )

    # Rows from elsewhere.

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        return (*map(value, self.relation.schema), COUNT, SITE, COUNT)

    @cached_property
    def place(self) -> tuple[str, ...]:
        """What orders the rows of one version."""
        rowid = not self.table.schema or any(field.nullable for field in self.table.schema)
        return ("rowid",) if rowid else self.table.columns

    def version_ddl(self) -> list[str]:
        by = ", ".join(("version", *(() if self.place == ("rowid",) else self.place)))
        return [
            f"CREATE INDEX IF NOT EXISTS {self.table.name}_version ON {self.table.name} ({by})",
            f"CREATE INDEX IF NOT EXISTS {self.table.name}_dead ON {self.table.name} (cl) WHERE NOT cl & 1",
        ]

    def read(
        self,
        connection: sqlite3.Connection,
        since: int,
        after: Position | None,
        limit: int,
        room: int = CHUNK_BYTES,
        *,
        where: str = "1",
    ) -> Chunk:
        sent = [*self.table.columns, "cl", "site", "iif(site = 0, version, seq)"]
        select = f"SELECT {', '.join([*sent, 'version', *self.place])} FROM {self.table.name} WHERE {where}"
        return read_by_version(connection, select, self.place, since, after, Bound(limit, room, self.weighed))

    @cached_property
    def _collected(self) -> str:
        """Whether an arrived row a was collected here."""
        held = f"EXISTS (SELECT 1 FROM {self.table.name} AS r WHERE {self.same('r', 'a')})"
        return f"{covers('a', own='')} AND NOT {held}"

    @cached_property
    def _ignore(self) -> str:
        return f"DELETE FROM {self.arrived} AS a WHERE {self._collected}"

    @cached_property
    def _change(self) -> str:
        staged = ", ".join(f"a.{column}" for column in self.table.columns)
        return (
            f"INSERT INTO {self.delta} SELECT {', '.join(filter(None, [staged, 'iif(a.cl & 1, 1, -1)']))} "
            f"FROM {self.arrived} AS a LEFT JOIN {self.table.name} AS r ON {self.same('r', 'a')} "
            f"WHERE a.cl > ifnull(r.cl, 0) AND (a.cl & 1) <> (ifnull(r.cl, 0) & 1)"
        )

    @cached_property
    def _join(self) -> str:
        names = ("cl", "version", "site", "seq")
        return self.table.upsert(
            f"SELECT {', '.join([*self.table.columns, 'cl', '?', 'site', 'seq'])} FROM {self.arrived}",
            [f"{name} = excluded.{name}" for name in names],
            unless="excluded.cl <= cl",
        )

    @cached_property
    def _add(self) -> str:
        """Store what arrived and is not held: where that is nearly all, it takes less than an upsert."""
        names = ", ".join((*self.table.columns, "cl", "version", "site", "seq"))
        rows = f"SELECT {', '.join([*self.table.columns, 'cl', '?', 'site', 'seq'])} FROM {self.arrived}"
        return f"INSERT OR IGNORE INTO {self.table.name} ({names}) {rows}"

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Mostly all of a page are new, or all are held: rows that all come to live are taken to be new.

        Where some of them are held, joining what was just stored once more changes nothing.
        """
        if not len(arrival):
            return 0
        width = len(self.table.columns)
        columns = each_once(arrival.columns, range(width), width)
        stage_columns(connection, self.arrived, columns)
        if arrival.returning:
            self.keep(connection, f"SELECT {self._key()}, cl FROM {self.arrived}")
        if arrival.covered and arrival.joining:
            self._bury(connection, arrival)
        elif arrival.covered:
            connection.execute(self._ignore)
        staged, grown = len(columns[width]), 0
        if connection.execute(self._change).rowcount == staged and width and columns[width][0] & 1:
            grown = connection.execute(self._add, (arrival.version,)).rowcount
        if grown < staged:
            grown += connection.execute(self._join, (arrival.version,)).rowcount
        connection.execute(f"DELETE FROM {self.arrived}")
        return grown

    def _bury(self, connection: sqlite3.Connection, arrival: Arrival) -> None:
        """At which length a tuple was collected is not known, only that the floor is no less.

        So that is where it is dead, or a longer chain that was seen here would outlive it elsewhere. What has
        died where the site joins may have died sooner, if that group was put back. Of rows that have owners
        only the own ones: others' deaths have the same origin whoever tells them, and so the same length.
        """
        own = "o.site = 0" if self.mine("a", "")[1] else "1"
        length = f"max(cl + (cl & 1), iif({own}, {_even(arrival.floor)}, 0))"
        again = int(arrival.founded_again)
        self.bury(
            connection,
            arrival,
            alive=f"(cl & 1 OR ({again} AND cl < {length}))",
            change=f"cl = {length}",
            collected=self._collected,
        )

    def _key(self) -> str:
        return ", ".join(self.table.key()) or "1"

    def lift(self, connection: sqlite3.Connection, commit: Commit, by: int) -> int:
        """All that is unseen goes up: what lives keeps its lead over what is dead.

        The dead too, or a lifted row would outlive a deletion that had seen it; and what the snapshot holds
        as well, or a row would lose to a deletion that it had seen, and that another site has lifted.
        """
        mine, name = self.mine("r", commit.name)
        return connection.execute(
            f"UPDATE {self.table.name} AS r SET cl = cl + ?, version = ?, site = 0, seq = 0 "
            f"WHERE NOT {covers('r')} AND {mine}",
            (by, commit.version, *name),
        ).rowcount

    def settle(self, connection: sqlite3.Connection, commit: Commit, *, from_another: bool) -> int:
        listed, name = self.listed, self.table.name
        key = self.table.key() or ("1",)
        gone = f"FROM {name} AS r WHERE NOT {self.kept_as(key)} AND {covers('r')}"
        connection.execute(f"INSERT INTO {self.delta} SELECT {listed}, -1 {gone} AND cl & 1")
        dropped = connection.execute(f"DELETE {gone}").rowcount
        if not from_another:
            return dropped
        mine, called = self.mine("r", commit.name)
        again = connection.execute(
            f"UPDATE {name} AS r SET version = ?, site = 0, seq = 0 "
            f"WHERE NOT cl & 1 AND {mine} AND NOT {self.kept_as(key, 'value >= r.cl')}",
            (commit.version, *called),
        ).rowcount
        return dropped + again

    # Garbage.

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        dead = f"FROM {self.table.name} AS r WHERE NOT cl & 1 AND cl <= {HIGHEST_FLOOR} AND {covers('r')}"
        (floor,) = connection.execute(f"SELECT ifnull(max(cl), 0) {dead}").fetchone()
        return (connection.execute(f"DELETE {dead}").rowcount if floor else 0), floor

    def garbage(self, connection: sqlite3.Connection) -> int:
        return int(
            connection.execute(f"SELECT count(*) FROM {self.table.name} WHERE NOT cl & 1").fetchone()[0]
        )

    # Sites.

    def retell(self, connection: sqlite3.Connection, since: int, old: int, commit: Commit) -> int:
        return connection.execute(
            f"UPDATE {self.table.name} SET version = ?, site = 0, seq = 0 WHERE site = ? AND seq > ?",
            (commit.version, old, since),
        ).rowcount


def _even(floor: int) -> int:
    """Only what is dead is collected; but a floor may come from anywhere."""
    return floor + floor % 2
