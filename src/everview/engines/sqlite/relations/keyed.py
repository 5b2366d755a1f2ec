"""Keyed relations: a key's row is the one of the greatest stamp whose time has come; last writer wins.

A version that another supersedes is dropped at once: nothing that is still to come can bring it back, for
what supersedes it is forgotten only when no member can write below it any more. A version from the future
waits in a table of its own. Equal stamps of different sites are told apart by the sites' incarnations, which
sort alike everywhere; two rows under one stamp of one site cannot be, and become ⊤ (`alive` = 2).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from everview.engines.sqlite.measuring import Bound, fetch
from everview.engines.sqlite.names import CONFLICTS, SITES, STORE
from everview.engines.sqlite.parts import (
    CHUNK_BYTES,
    COUNT,
    SITE,
    Arrival,
    Chunk,
    PartColumn,
    Position,
    Row,
    value,
)
from everview.engines.sqlite.places import beyond, told
from everview.engines.sqlite.relations.base import StoredRelation, covers, read_by_version
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.relations.staging import stage
from everview.language.types import Field

TOP = 2

_DEATH = "iif(alive = 1, stamp - 1, stamp)"
"""The greatest stamp of a death that a version of the key makes superfluous."""


class KeyedRelation(StoredRelation):
    """Key → (stamp, row or ⊥), joined by the greater stamp."""

    @property
    def partial(self) -> str:
        return "alive = 1"

    @property
    def replaces(self) -> bool:
        return True

    @property
    def future(self) -> str:
        """The table of versions whose time has not come."""
        return f"{self.table.name}_future"

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table.name, self.future)

    @property
    def _versioned(self) -> tuple[str, ...]:
        return self.tables

    def ddl(self) -> list[str]:
        extras = [
            *self.table.columns,
            "alive",
            "stamp INTEGER",
            "version INTEGER",
            "site INTEGER",
            "seq INTEGER",
        ]
        key = ", ".join(("stamp", *self.table.key(), "site"))
        return [
            *self.table.ddl(),
            f"CREATE TABLE {self.future} ({', '.join(extras)}, PRIMARY KEY ({key})) WITHOUT ROWID",
        ]

    # Writing here.

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        stage(connection, self.delta, rows, 1)
        return self._write(connection, commit, alive=True)

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        stage(connection, self.delta, rows, -1)
        return self._write(connection, commit, alive=False)

    def _write(self, connection: sqlite3.Connection, commit: Commit, *, alive: bool) -> int:
        """Replace the rows of the staged keys; of several rows for one key the last counts.

        A key that has no row is not deleted: there is nothing that others would have to hear of.
        """
        keys = self.table.key()
        last = f"SELECT max(rowid) FROM {self.delta} GROUP BY {', '.join(keys)}"
        connection.execute(f"DELETE FROM {self.delta} WHERE rowid NOT IN ({last})")
        on = " AND ".join(f"r.{key} = d.{key}" for key in keys)
        if not alive:
            held = f"SELECT 1 FROM {self.table.name} AS r WHERE {on} AND r.alive = 1"
            connection.execute(f"DELETE FROM {self.delta} AS d WHERE NOT EXISTS ({held})")
        mine = ", ".join(f"r.{column}" for column in self.table.columns)
        connection.execute(
            f"INSERT INTO {self.scratch} SELECT {mine}, -1 "
            f"FROM {self.delta} AS d CROSS JOIN {self.table.name} AS r ON {on} AND r.alive = 1"
        )
        staged = f"SELECT {self.listed}, {int(alive)}, ?, ?, 0, 0 FROM {self.delta}"
        grown = connection.execute(
            self.table.upsert(staged, self._overwrite), (commit.stamp, commit.version)
        ).rowcount
        commit.grown |= grown > 0
        if not alive:
            connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(f"INSERT INTO {self.delta} SELECT * FROM {self.scratch}")
        connection.execute(f"DELETE FROM {self.scratch}")
        connection.execute(self.net)
        counted = f"SELECT count(*) FROM {self.delta} WHERE w {'>' if alive else '<'} 0"
        return int(connection.execute(counted).fetchone()[0])

    @cached_property
    def _overwrite(self) -> list[str]:
        names = (*self.table.columns, "alive", "stamp", "version", "site", "seq")
        return [f"{name} = excluded.{name}" for name in names]

    # Rows from elsewhere.

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        def sent(field: Field) -> PartColumn:  # a deleted row has only its key
            return value(
                field if field.name in self.relation.key else Field(field.name, field.type, nullable=True)
            )

        return (*map(sent, self.relation.schema), COUNT, COUNT, SITE, COUNT)

    @property
    def place(self) -> tuple[str, ...]:
        return self.table.key()

    def version_ddl(self) -> list[str]:
        by = ", ".join(("version", *self.table.key()))
        return [
            f"CREATE INDEX IF NOT EXISTS {self.table.name}_version ON {self.table.name} ({by})",
            f"CREATE INDEX IF NOT EXISTS {self.table.name}_dead ON {self.table.name} (stamp) WHERE alive = 0",
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
        """Versions from the future come last: what was read before went by the versions of other rows.

        A position among them has their place, which is longer than a key, and the commit up to which the
        others have been read. At their end these go on from there, with all that has come meanwhile.
        """
        sent, key, bound = ", ".join(self._sent), self.table.key(), Bound(limit, room, self.weighed)
        if after is not None and len(after.key) > len(key) + 1:
            return self._read_future(connection, since, after, bound, where)
        select = f"SELECT {', '.join([sent, 'version', *key])} FROM {self.table.name} WHERE {where}"
        chunk = read_by_version(connection, select, key, since, after, bound)
        if chunk.reached is not None or not connection.execute(f"SELECT 1 FROM {self.future}").fetchone():
            return chunk
        start = max(since, after.version) if after is not None and not after.key else since
        (head,) = connection.execute(f"SELECT version FROM {STORE}").fetchone()
        left = bound.without(chunk.rows, chunk.size)
        more = self._read_future(connection, start, Position(head), left, where)
        reached = more.reached if more.reached is not None and more.reached.key else None
        return Chunk(chunk.rows + more.rows, reached, chunk.size + more.size)

    @cached_property
    def _sent(self) -> list[str]:
        return [*self.table.columns, "alive", "stamp", "site", "iif(site = 0, version, seq)"]

    def _read_future(
        self, connection: sqlite3.Connection, since: int, after: Position, bound: Bound, where: str
    ) -> Chunk:
        """Return versions from the future that came after a commit, from a place on."""
        place = ("stamp", *self.table.key(), "site")
        width, listed = len(place), ", ".join(place)
        select = f"SELECT {', '.join([*self._sent, *place])} FROM {self.future} WHERE {where} AND version > ?"

        def find(compared: str, cells: Row) -> Iterator[Row]:
            from_there = f" AND ({listed}) {compared} ({', '.join('?' * width)})" if cells else ""
            return connection.execute(f"{select}{from_there} ORDER BY {listed}", (since, *cells))

        found, size = fetch(beyond(find, after.key, width) if after.key else find(">", ()), bound)
        key = told(found[-1][-width:]) if bound.is_reached(found, size) else ()
        return Chunk([row[:-width] for row in found], Position(after.version, key), size)

    @cached_property
    def _on(self) -> str:
        return " AND ".join(f"r.{key} = a.{key}" for key in self.table.key())

    @cached_property
    def _collected(self) -> str:
        """Whether an arrived version a was collected here: it neither is held nor waits for its time."""
        held = f"EXISTS (SELECT 1 FROM {self.table.name} AS r WHERE {self._on})"
        same = f"{self._on} AND r.stamp = a.stamp AND r.site = a.site"
        waits = f"EXISTS (SELECT 1 FROM {self.future} AS r WHERE {same})"
        return f"{covers('a', own='')} AND NOT {held} AND NOT {waits}"

    @cached_property
    def _ignore(self) -> str:
        return f"DELETE FROM {self.arrived} AS a WHERE {self._collected}"

    @cached_property
    def _two_values(self) -> str:
        both = ["alive", *self.table.columns]
        mine, theirs = (", ".join(f"{alias}.{name}" for name in both) for alias in ("r", "a"))
        twin = (
            f"{self._on} AND r.stamp = a.stamp AND {_incarnation('r')} = {_incarnation('a')} "
            f"AND ({mine}) IS NOT ({theirs})"
        )
        return (
            f"UPDATE {self.arrived} AS a SET alive = {TOP} WHERE alive <> {TOP} "
            f"AND EXISTS (SELECT 1 FROM {self.table.name} AS r WHERE {twin})"
        )

    @cached_property
    def _lose(self) -> str:
        """Drop what arrived and is not above what is held; sites matter only where stamps are equal."""
        tops = f"(a.alive = {TOP}) > (r.alive = {TOP})"
        later = f"({_incarnation('a')}, {tops}) > ({_incarnation('r')}, 0)"
        above = f"(a.stamp > r.stamp OR (a.stamp = r.stamp AND {later}))"
        return (
            f"DELETE FROM {self.arrived} AS a WHERE EXISTS "
            f"(SELECT 1 FROM {self.table.name} AS r WHERE {self._on} AND NOT {above})"
        )

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        come, waiting = self._sorted_out(connection, arrival.rows, arrival.limit)
        grown = 0
        if waiting:
            stage(connection, self.arrived, waiting)
            self._judge(connection, arrival, death="0")  # it says nothing yet of who lives
            grown = self._wait(connection, arrival)
        stage(connection, self.arrived, come)
        self._judge(connection, arrival, death=_DEATH)
        return grown + self._join(connection, arrival.version)

    def _judge(self, connection: sqlite3.Connection, arrival: Arrival, *, death: str) -> None:
        """What arrived and was collected here is ignored; where the site joins, it dies."""
        if arrival.returning:
            keys = ", ".join(self.table.key())
            self.keep(connection, f"SELECT {keys}, {death} FROM {self.arrived}")
        if arrival.covered and not arrival.joining:
            connection.execute(self._ignore)
        if arrival.covered and arrival.joining:
            after = "alive = 0, stamp = stamp + 1"  # right after it was written
            self.bury(connection, arrival, alive="alive = 1", change=after, collected=self._collected)

    def _wait(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Set aside what arrived from the future; what a snapshot has of it is marked by its commit."""
        names = ", ".join((*self.table.columns, "alive", "stamp", "site", "seq"))
        again = "DO UPDATE SET version = excluded.version" if arrival.returning else "DO NOTHING"
        grown = connection.execute(
            f"INSERT INTO {self.future} ({names}, version) SELECT {names}, ? FROM {self.arrived} WHERE 1 "
            f"ON CONFLICT {again}",
            (arrival.version,),
        ).rowcount
        connection.execute(f"DELETE FROM {self.arrived}")
        return grown

    def _join(self, connection: sqlite3.Connection, version: int) -> int:
        connection.execute(self._two_values)
        connection.execute(self._lose)
        connection.execute(
            f"INSERT OR IGNORE INTO {CONFLICTS} SELECT ? FROM {self.arrived} WHERE alive = {TOP} LIMIT 1",
            (self.relation.name,),
        )
        mine = ", ".join(f"r.{column}" for column in self.table.columns)
        (before,) = connection.execute(f"SELECT ifnull(max(rowid), 0) FROM {self.delta}").fetchone()
        replaced = connection.execute(
            f"INSERT INTO {self.delta} SELECT {mine}, -1 "
            f"FROM {self.arrived} AS a CROSS JOIN {self.table.name} AS r ON {self._on} AND r.alive = 1"
        ).rowcount
        connection.execute(
            f"INSERT INTO {self.delta} SELECT {self.listed}, 1 FROM {self.arrived} WHERE alive = 1"
        )
        if replaced:  # else nothing can cancel: every key came once
            connection.execute(self._net_since, (before,))
        staged = f"SELECT {self.listed}, alive, stamp, ?, site, seq FROM {self.arrived}"
        grown = connection.execute(self.table.upsert(staged, self._overwrite), (version,)).rowcount
        connection.execute(f"DELETE FROM {self.arrived}")
        return grown

    @cached_property
    def _net_since(self) -> str:
        """Drop staged rows that cancel, of those after a place: what lies before has been seen to."""
        group = f"SELECT min(rowid) FROM {self.delta} WHERE rowid > ?1 GROUP BY {self.listed}"
        return f"DELETE FROM {self.delta} WHERE rowid > ?1 AND rowid NOT IN ({group} HAVING sum(w) <> 0)"

    def conflicting(self, connection: sqlite3.Connection) -> Row | None:
        """Return the key of a row that has two values, if there is one."""
        keys = ", ".join(self.table.key())
        found: Row | None = connection.execute(
            f"SELECT {keys} FROM {self.table.name} WHERE alive = {TOP} LIMIT 1"
        ).fetchone()
        return found

    def come(self, connection: sqlite3.Connection, version: int, limit: int) -> int:
        """Value the versions whose time has come; return how many grew. The delta holds what changed."""
        due = f"FROM {self.future} WHERE stamp <= ?"
        names = (*self.table.columns, "alive", "stamp", "site", "seq")
        rows = connection.execute(f"SELECT {', '.join(names)} {due}", (limit,)).fetchall()
        if not rows:
            return 0
        connection.execute(f"DELETE {due}", (limit,))
        come, _ = self._sorted_out(connection, rows, limit)
        stage(connection, self.arrived, come)
        return self._join(connection, version)

    def next_time(self, connection: sqlite3.Connection) -> int | None:
        """Return the least stamp that lies in the future, if there is one."""
        found: int | None = connection.execute(f"SELECT min(stamp) FROM {self.future}").fetchone()[0]
        return found

    def last_due(self, connection: sqlite3.Connection, limit: int) -> int:
        """Return the greatest stamp that waits and has come, or 0."""
        due = f"SELECT ifnull(max(stamp), 0) FROM {self.future} WHERE stamp <= ?"
        return int(connection.execute(due, (limit,)).fetchone()[0])

    def last_come(self, connection: sqlite3.Connection, limit: int) -> int:
        """Return the greatest stamp held up to a limit, or 0."""
        held = f"SELECT ifnull(max(stamp), 0) FROM {self.table.name} WHERE stamp <= ?"
        return int(connection.execute(held, (limit,)).fetchone()[0])

    def set_back(self, connection: sqlite3.Connection, number: int, limit: int, commit: Commit) -> int:
        """Have what is above the limit wait for its time: it was taken for come under a clock that was ahead.

        What the site of this number wrote of it is told again, as this commit's. Returns how many rows were
        changed; the delta holds what that made.
        """
        names = ", ".join((*self.table.columns, "alive", "stamp", "version", "site", "seq"))
        ahead = f"FROM {self.table.name} WHERE stamp > ?"
        connection.execute(f"INSERT OR IGNORE INTO {self.future} ({names}) SELECT {names} {ahead}", (limit,))
        again = connection.execute(
            f"UPDATE {self.table.name} SET stamp = ?, version = ?, site = 0, seq = 0 "
            f"WHERE stamp > ? AND site = ? AND alive < {TOP}",
            (commit.stamp, commit.version, limit, number),
        ).rowcount
        connection.execute(
            f"INSERT INTO {self.delta} SELECT {self.listed}, -1 {ahead} AND alive = 1", (limit,)
        )
        return again + connection.execute(f"DELETE {ahead}", (limit,)).rowcount

    def _sorted_out(
        self, connection: sqlite3.Connection, rows: Sequence[Row], limit: int
    ) -> tuple[Sequence[Row], Sequence[Row]]:
        """Return the last version of each key whose time has come, and the versions from the future.

        Mostly every key comes once, in the past, and nothing needs to be done.
        """
        width = len(self.table.columns)
        at = [self.relation.columns.index(name) for name in self.relation.key]
        waiting = [row for row in rows if row[width + 1] > limit]
        come = [row for row in rows if row[width + 1] <= limit] if waiting else rows
        if len({tuple(row[place] for place in at) for row in come}) == len(come):
            return come, waiting
        names = dict(connection.execute(f"SELECT number, incarnation FROM {SITES}"))
        last: dict[Row, Row] = {}
        for row in come:
            key = tuple(row[place] for place in at)
            last[key] = _later(last.get(key, row), row, width, names)
        return list(last.values()), waiting

    def settle(self, connection: sqlite3.Connection, commit: Commit, *, from_another: bool) -> int:
        """An unseen row below the floor is written again, under a new stamp.

        A death that is told again gets the next stamp where the snapshot has a row of the very same one:
        else the name of who tells it would decide between the two.
        """
        name, floor = self.table.name, commit.floors.get(self.relation.name, 0)
        key = self.table.key()
        missing = f"NOT {self.kept_as(key)}"
        gone = f"FROM {name} AS r WHERE {missing} AND {covers('r')}"
        connection.execute(f"INSERT INTO {self.delta} SELECT {self.listed}, -1 {gone} AND alive = 1")
        dropped = connection.execute(f"DELETE {gone}").rowcount
        dropped += connection.execute(
            f"DELETE FROM {self.future} AS f WHERE version <> ? AND {covers('f')}", (commit.version,)
        ).rowcount
        mine, called = self.mine("r", commit.name)
        lifted = connection.execute(
            f"UPDATE {name} AS r SET stamp = ?, version = ?, site = 0, seq = 0 "
            f"WHERE {missing} AND alive = 1 AND stamp <= ? AND {mine}",
            (commit.stamp, commit.version, floor, *called),
        ).rowcount
        if not from_another:
            return dropped + lifted
        tied = self.kept_as([f"r.{column}" for column in key], "value = r.stamp - 1")
        mine, called = self.mine("r", commit.name, dead=True)
        again = connection.execute(
            f"UPDATE {name} AS r SET stamp = stamp + {tied}, version = ?, site = 0, seq = 0 "
            f"WHERE alive = 0 AND {mine} AND NOT {self.kept_as(key, 'value >= r.stamp')}",
            (commit.version, *called),
        ).rowcount
        return dropped + lifted + again

    # Garbage.

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        """A delete is forgotten when it is stable and every member's clock has passed its stamp."""
        dead = f"FROM {self.table.name} AS r WHERE alive = 0 AND stamp <= ? AND {covers('r')}"
        (floor,) = connection.execute(f"SELECT ifnull(max(stamp), 0) {dead}", (passed,)).fetchone()
        return (connection.execute(f"DELETE {dead}", (passed,)).rowcount if floor else 0), floor

    def garbage(self, connection: sqlite3.Connection) -> int:
        dead = f"SELECT count(*) FROM {self.table.name} WHERE alive = 0"
        return int(connection.execute(dead).fetchone()[0])

    def retell(self, connection: sqlite3.Connection, since: int, old: int, commit: Commit) -> int:
        return connection.execute(
            f"UPDATE {self.table.name} SET stamp = ?, version = ?, site = 0, seq = 0 "
            "WHERE site = ? AND seq > ?",
            (commit.stamp, commit.version, old, since),
        ).rowcount

    def renumber(self, connection: sqlite3.Connection, number: int) -> None:
        super().renumber(connection, number)
        connection.execute(f"UPDATE {self.future} SET site = ?, seq = version WHERE site = 0", (number,))


def _incarnation(alias: str) -> str:
    return f"(SELECT s.incarnation FROM {SITES} AS s WHERE s.number = {alias}.site)"


def _later(held: Row, row: Row, width: int, names: dict[int, str]) -> Row:
    """The later of two versions of a key; ⊤ where they are different and equally late."""
    ours, theirs = ((r[width + 1], names.get(r[width + 2], "")) for r in (held, row))
    if ours != theirs:
        return max((ours, held), (theirs, row), key=lambda pair: pair[0])[1]
    return held if held[: width + 1] == row[: width + 1] else (*held[:width], TOP, *held[width + 1 :])
