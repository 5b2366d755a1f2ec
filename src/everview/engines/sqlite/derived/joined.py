"""Joined rows: the derivations of a branch that joins, at a site that hosts the view without its inputs.

A derivation names a row of a hollow input by position. It exists while all of them are held, and is shown
while all of them are shown: `hidden` says of how many this is not so. One that names a row which is not held
is ignored: the row is gone for good, and if its like is written again, that has another dot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.derived.hollow import HollowRows
from everview.engines.sqlite.derived.telling import Most, Place, Told
from everview.engines.sqlite.measuring import Bound, fetch, long_columns
from everview.engines.sqlite.rows.base import GONE
from everview.engines.sqlite.rows.staging import pour
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.plan import Schema
from everview.planner.branches import Branch

_UNSEEN = "hidden = 0"


@dataclass
class JoinedRows:
    """The tables and statements of one branch; `delta` is that of all branches of the core."""

    number: int
    branch: Branch
    schema: Schema
    table: str
    delta: str
    """Temporary: rows that came to be shown (w = 1), or ceased to (w = −1); staged ones have names, too."""
    positions: tuple[HollowRows, ...]

    def __post_init__(self) -> None:
        for hollow in {id(at): at for at in self.positions}.values():
            places = [n for n, at in zip(self.names, self.positions, strict=True) if at is hollow]
            hollow.followers.append(partial(self._follow, hollow, places))

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of the row."""
        return columns(len(self.schema))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the dots, by position."""
        return tuple(f"n{position}" for position in range(len(self.positions)))

    # Tables.

    def ddl(self) -> list[str]:
        """Return what creates its table. The key serves the first position; see `_index`."""
        fields = [f"{c} {column_type(f.type)}" for c, f in zip(self.cells, self.schema, strict=True)]
        fields += [f"{name} INTEGER NOT NULL" for name in self.names]
        fields += ["hidden INTEGER NOT NULL", "source INTEGER NOT NULL", "version INTEGER NOT NULL"]
        key = f"PRIMARY KEY ({', '.join(self.names)})"
        return [f"CREATE TABLE {self.table} ({', '.join([*fields, key])}) WITHOUT ROWID"]

    def _index(self, connection: sqlite3.Connection, name: str) -> None:
        """Find derivations by a position from now on: a row there has gone, and more may go.

        Of many views this is never so for most positions, and an index is half of what a derivation costs.
        """
        if name != self.names[0]:
            index = f"{self.table}_{name}"
            connection.execute(f"CREATE INDEX IF NOT EXISTS {index} ON {self.table} ({name})")

    def version_ddl(self) -> list[str]:
        """Return what creates the index by which news is found, once somebody reads it here."""
        by = ", ".join(("version", *self.names))
        return [f"CREATE INDEX IF NOT EXISTS {self.table}_version ON {self.table} ({by})"]

    # Derivations that come.

    def add(
        self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], source: int, version: int
    ) -> int:
        """Add derivations that are new, of rows that are held; return how many.

        They are given as columns, the names last. Mostly all of them are new, and nothing is hidden. The
        source is the site that told them: it is not told them again.
        """
        (before,) = connection.execute(f"SELECT ifnull(max(rowid), 0) FROM {self.delta}").fetchone()
        staged = f"INSERT INTO {self.delta} ({', '.join(('w', *self.cells, *self.names))})"
        pour(connection, lambda values: f"{staged} {values}", rows, 1)
        connection.execute("SAVEPOINT derived")
        count = connection.execute(self._store, (before, source, version)).rowcount
        if count < len(rows[0]) or self._is_crowded(connection):
            connection.execute("ROLLBACK TO derived")
            count = self._sort_out(connection, (before, source, version))
        connection.execute("RELEASE derived")
        return count

    def _is_crowded(self, connection: sqlite3.Connection) -> bool:
        return any(hollow.is_crowded(connection) for hollow in self.positions)

    @cached_property
    def _into(self) -> str:
        listed = ", ".join((*self.cells, *self.names, "hidden", "source", "version"))
        return f"INSERT OR IGNORE INTO {self.table} ({listed})"

    @cached_property
    def _store(self) -> str:
        """Add what was staged after a place, of rows that are all shown."""
        listed = ", ".join(f"d.{c}" for c in (*self.cells, *self.names))
        held = " AND ".join(
            at.is_named(f"d.{name}", beside=False)
            for name, at in zip(self.names, self.positions, strict=True)
        )
        return f"{self._into} SELECT {listed}, 0, ?2, ?3 FROM {self.delta} AS d WHERE d.rowid > ?1 AND {held}"

    def _sort_out(self, connection: sqlite3.Connection, given: tuple[int, int, int]) -> int:
        """Add what is new, each once, and leave in the delta what is shown."""
        before = given[:1]
        names, staged = ", ".join(self.names), f"{self.delta} AS d WHERE d.rowid > ?1"
        known = " AND ".join(f"b.{name} = d.{name}" for name in self.names)
        first = f"SELECT min(rowid) FROM {self.delta} WHERE rowid > ?1 GROUP BY {names}"
        connection.execute(
            f"DELETE FROM {staged} AND (d.rowid NOT IN ({first}) "
            f"OR EXISTS (SELECT 1 FROM {self.table} AS b WHERE {known}))",
            before,
        )
        hidden = self._hidden("d")
        listed = ", ".join((*self.cells, *self.names))
        count = connection.execute(
            f"{self._into} SELECT *, ?2, ?3 FROM (SELECT {listed}, {hidden} AS hidden FROM {staged}) "
            "WHERE hidden IS NOT NULL",
            given,
        ).rowcount
        shown = f"SELECT 1 FROM {self.table} AS b WHERE {known} AND b.{_UNSEEN}"
        connection.execute(f"DELETE FROM {staged} AND NOT EXISTS ({shown})", before)
        return count

    def _hidden(self, alias: str) -> str:
        """How many rows are held and not shown that a derivation names; NULL where one is not held."""
        return " + ".join(
            f"CASE WHEN {at.is_named(f'{alias}.{name}', beside=False)} THEN 0"
            + (f" WHEN {at.is_named(f'{alias}.{name}', beside=True)} THEN 1" if len(at.tables) > 1 else "")
            + " END"
            for name, at in zip(self.names, self.positions, strict=True)
        )

    # Rows that go, or turn.

    def _follow(self, hollow: HollowRows, places: Sequence[str], connection: sqlite3.Connection) -> str:
        """Drop derivations of rows that are gone, and count anew what is hidden, place by place."""
        some = f"SELECT EXISTS (SELECT 1 FROM {GONE}) OR EXISTS (SELECT 1 FROM {hollow.turned})"
        if not connection.execute(some).fetchone()[0]:
            return ""
        changed = False
        listed = ", ".join(f"b.{c}" for c in self.cells)
        into = f"INSERT INTO {self.delta} ({', '.join((*self.cells, 'w'))})"
        turned = f"(SELECT dot, sum(w) AS w FROM {hollow.turned} GROUP BY dot HAVING sum(w) <> 0)"
        for name in places:
            self._index(connection, name)
            gone = f"{GONE} AS g CROSS JOIN {self.table} AS b ON b.{name} = g.dot"
            rows = connection.execute(f"{into} SELECT {listed}, -1 FROM {gone} WHERE b.{_UNSEEN}").rowcount
            connection.execute(f"DELETE FROM {self.table} WHERE {name} IN (SELECT dot FROM {GONE})")
            met = f"{turned} AS t CROSS JOIN {self.table} AS b ON b.{name} = t.dot AND b.hidden = (t.w > 0)"
            rows += connection.execute(f"{into} SELECT {listed}, t.w FROM {met}").rowcount
            connection.execute(
                f"UPDATE {self.table} SET hidden = hidden - t.w FROM {turned} AS t "
                f"WHERE {self.table}.{name} = t.dot"
            )
            changed |= rows > 0
        return self.delta if changed else ""

    def faults(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Yield what is wrong: derivations of rows that are not held, or hidden where all rows are shown."""
        hidden = f"SELECT {self._hidden('d')} AS counted, hidden FROM {self.table} AS d"
        for what, where in (("name rows that are not here", "IS NULL"), ("are hidden wrongly", "<> hidden")):
            count = f"SELECT count(*) FROM ({hidden}) WHERE counted {where}"
            (found,) = connection.execute(count).fetchone()
            if found:
                yield f"{found:,} derivations in {self.table} {what}"

    # What the circuit reads, and who asks for them.

    @property
    def partial(self) -> str:
        """The condition under which a derivation is shown, beginning with a bare column."""
        return _UNSEEN

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all that is shown into the delta, as if it had just come; return how many."""
        listed = ", ".join(self.cells)
        return connection.execute(
            f"INSERT INTO {self.delta} ({listed}, w) SELECT {listed}, 1 FROM {self.table} WHERE {_UNSEEN}"
        ).rowcount

    def newest(self, connection: sqlite3.Connection) -> int:
        """Return the version at which the last one came."""
        return int(connection.execute(f"SELECT ifnull(max(version), 0) FROM {self.table}").fetchone()[0])

    @property
    def width(self) -> int:
        """How many values a derivation has."""
        return len(self.schema) + len(self.positions)

    def read(self, connection: sqlite3.Connection, since: int, after: Place, most: Most) -> Told:
        """Return what came since a version, hidden or not, in the order of versions."""
        place = ("version", *self.names)
        after = after if len(after) == len(place) else (max(since, *after[:1], 0),)
        marks = ", ".join("?" * len(after))
        rows, used = fetch(
            connection.execute(
                f"SELECT {', '.join((*self.cells, *self.names, 'version'))} FROM {self.table} "
                f"WHERE ({', '.join(place[: len(after)])}) > ({marks}) AND source <> ? "
                f"ORDER BY {', '.join(place)} LIMIT ?",
                (*after, most.reader, most.rows),
            ),
            Bound(most.rows, most.size, long_columns(self.schema)),
        )
        width = len(self.schema)
        reached = None
        if rows and (len(rows) == most.rows or used >= most.size):
            *_, last = rows
            reached = (last[-1], *last[width:-1])
        return Told(self.number, [row[:-1] for row in rows], len(self.names), reached, used)
