"""Partial aggregates in a store: what the rows of each owner come to, as entries, and where that stands.

An entry is a row of one of the stream's tables; owner and group tell it apart from others. It has the
commit at which it last changed here. One that has gone stays until it is forgotten; the *floor* is the
greatest commit of one that was. The tables of a stream are the same where entries are received and where
they are computed from rows to feed others. Where they are received the *standing* of each owner lies beside
them: how many commits of each of its incarnations the entries tell of (`tests/model/partials.py` is the
specification).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from everview.engines.sqlite.circuits.circuit import Changed, Circuit, Statement, consolidated, live
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.circuits.statetable import StateTable, same_row
from everview.engines.sqlite.gone import forget_gone
from everview.engines.sqlite.measuring import Bound, long_columns
from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.parts import CHUNK_BYTES, COUNT, SITE, Chunk, PartColumn, Position, value
from everview.engines.sqlite.relations.base import read_by_version
from everview.engines.sqlite.relations.staging import stage_columns
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.types import TEXT, Field
from everview.planner.partials import Partials

BEGINS, STANDINGS, ENTRIES = 0, 1, 2
"""The parts of the stream."""

BEGINS_COLUMNS = (COUNT,)
STANDING_COLUMNS = (value(Field("owner", TEXT, nullable=False)), COUNT, COUNT, SITE, COUNT)
"""Owner, how it is told, the number of the input, site, commit."""

Owned = Mapping[tuple[int, int], int]
"""A standing as it is stored: (number of the input, number of the site) → commit."""

_LISTED = "(SELECT value FROM json_each(?))"


class Which(NamedTuple):
    """The owners of which entries are read: all entries, or those that changed after a commit."""

    whole: frozenset[str]
    changed: frozenset[str]
    since: int


@dataclass(eq=False)
class StoredPartials:
    """The entries of a stream, here or for others: how circuits read and write them, and how they travel."""

    partials: Partials
    table: StateTable
    """Owner and group, then the values; an entry that has gone has none."""
    delta: str
    arrived: str
    """Temporary: entries that came with a cut."""
    head: str
    """One row: the floor."""

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return self.partials.name

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The names of the columns behind the owner and the group."""
        return tuple(f"v{place}" for place in range(len(self.partials.plan.schema) - self.partials.width))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of an entry's columns."""
        return (*self.table.columns, *self.values)

    def ddl(self) -> list[str]:
        """Return what creates its tables."""
        by = ", ".join(("version", *(() if self._place == ("rowid",) else self._place)))
        return [
            *self.table.ddl(),
            f"CREATE INDEX {self.table.name}_version ON {self.table.name} ({by})",
            f"CREATE INDEX {self.table.name}_dead ON {self.table.name} (version) WHERE alive = 0",
        ]

    # What circuits read, and what they write.

    def node(self, circuit: Circuit) -> Node:
        """Return how circuits read the entries and their change."""
        shown = columns(len(self.names))

        def delta() -> list[Select]:
            return [from_table(circuit.names, self.delta, shown, weight="w", stored=False, delta=True)]

        def contents() -> list[Select]:
            return [from_table(circuit.names, self.table.name, self.names, partial="alive = 1")]

        return Node(self.partials.plan.schema, delta, contents, is_set=True)

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all entries there are into the delta, as if they had just come; return how many."""
        rows = f"SELECT {', '.join(self.names)}, 1 FROM {self.table.name} WHERE alive = 1"
        return connection.execute(f"INSERT INTO {self.delta} {rows}").rowcount

    def follow(self, circuit: Circuit, source: Node) -> None:
        """Let every commit that changes the rows of a node change the entries."""
        branches, shown = source.delta(), columns(len(self.names))
        key = ", ".join(shown[: self.partials.width])

        def statements(changed: Changed) -> list[Statement]:
            rows = consolidated(live(branches, changed), self.partials.plan.schema)
            # Of what an entry was and what it is the latter weighs more; SQLite takes the rest from there.
            entries = f"SELECT {', '.join(shown)}, max(w) > 0, (SELECT version FROM {STORE}) FROM ({rows})"
            return [Statement(self.table.upsert(f"{entries} GROUP BY {key}", self._overwrite))]

        how = "by change: entries that others are to have"
        circuit.step("tell", how, branches, statements, makes="", table=self.table.name)

    # As it travels.

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        """The columns of entries on the wire: owner, group, values, and whether it is there."""
        width, schema = self.partials.width, self.partials.plan.schema
        behind = (Field(field.name, field.type, nullable=True) for field in schema[width:])
        return (*map(value, schema[:width]), *map(value, behind), COUNT)

    def read(
        self,
        connection: sqlite3.Connection,
        which: Which,
        after: Position,
        limit: int,
        room: int = CHUNK_BYTES,
    ) -> Chunk:
        """Return entries of some owners that changed after a position.

        They are at most about `limit`, or have about `room` bytes of texts and blobs.
        """
        sent = [*self.table.columns, *(f"iif(alive, {name}, NULL)" for name in self.values), "alive"]
        select = (
            f"SELECT {', '.join([*sent, 'version', *self._place])} FROM {self.table.name} "
            f"WHERE (c0 IN {_LISTED} OR (c0 IN {_LISTED} AND version > ?))"
        )
        given = (_listed(which.whole), _listed(which.changed), which.since)
        bound = Bound(limit, room, long_columns(self.partials.plan.schema))
        return read_by_version(connection, select, self._place, -1, after, bound, given=given)

    def stage(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Set entries of a page aside until the cut is whole."""
        stage_columns(connection, self.arrived, rows)

    def void(self, connection: sqlite3.Connection) -> None:
        """Forget what was set aside."""
        connection.execute(f"DELETE FROM {self.arrived}")

    def take(self, connection: sqlite3.Connection, which: Which, version: int) -> int:
        """Go over to later states of owners, by the entries that were set aside; return how many changed.

        The delta holds what changed.
        """
        key, mine = self.table.columns, [f"r.{name}" for name in self.names]
        shown = columns(len(self.names))
        last = f"SELECT max(rowid) FROM {self.arrived} GROUP BY {', '.join(key)}"
        same = same_row(self.table.schema, [f"r.{c}" for c in key], [f"a.{c}" for c in key])
        whole, changed = _listed(which.whole), _listed(which.changed)
        connection.execute(  # pages go forward
            f"DELETE FROM {self.arrived} WHERE rowid NOT IN ({last}) OR c0 NOT IN {_LISTED}",
            (_listed(which.whole | which.changed),),
        )
        there = f"{self.table.name} AS r"
        connection.execute(
            f"INSERT INTO {self.delta} SELECT {', '.join(shown)}, sum(w) FROM ("
            f"SELECT {', '.join(shown)}, 1 AS w FROM {self.arrived} WHERE alive = 1 UNION ALL "
            f"SELECT {', '.join(mine)}, -1 FROM {there} WHERE r.alive = 1 AND r.c0 IN {_LISTED} UNION ALL "
            f"SELECT {', '.join(mine)}, -1 FROM {self.arrived} AS a CROSS JOIN {there} ON {same} "
            f"WHERE r.alive = 1 AND a.c0 IN {_LISTED}"
            f") GROUP BY {', '.join(shown)} HAVING sum(w) <> 0",
            (whole, changed),
        )
        brought = f"SELECT 1 FROM {self.arrived} AS a WHERE {same} AND a.alive = 1"
        grown = connection.execute(
            f"UPDATE {there} SET alive = 0, version = ? WHERE alive = 1 AND r.c0 IN {_LISTED} "
            f"AND NOT EXISTS ({brought})",
            (version, whole),
        ).rowcount
        unchanged = " AND ".join(f"{name} IS excluded.{name}" for name in ("alive", *self.values))
        staged = f"SELECT {', '.join([*shown, 'alive'])}, ? FROM {self.arrived}"
        upsert = self.table.upsert(staged, self._overwrite, unless=unchanged)
        grown += connection.execute(upsert, (version,)).rowcount
        self.void(connection)
        return grown

    def floor(self, connection: sqlite3.Connection) -> int:
        """The greatest commit of an entry that was forgotten: who has read less is told everything."""
        return int(connection.execute(f"SELECT floor FROM {self.head}").fetchone()[0])

    def collect(self, connection: sqlite3.Connection, keep: int | None = None) -> int:
        """Forget entries that have gone, but for the last few; return how many went.

        `keep` says how many stay, else it is as many as there are entries and some more.
        """
        return forget_gone(connection, self.table.name, self.head, "alive = 0", "version", keep)

    # Inside.

    @cached_property
    def _place(self) -> tuple[str, ...]:
        """What orders the entries of one commit."""
        rowid = any(field.nullable for field in self.table.schema)
        return ("rowid",) if rowid else self.table.columns

    @cached_property
    def _overwrite(self) -> list[str]:
        return [f"{name} = excluded.{name}" for name in (*self.values, "alive", "version")]


@dataclass(eq=False)
class ReceivedPartials(StoredPartials):
    """Partial aggregates that come from elsewhere, and where each owner's stands."""

    standing: str
    """(Owner, number of the input, number of a site) → commit."""
    agrees: str
    """(Owner, number of a site): this store has what that site had when it was last read."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are the truth about what was received."""
        return (self.table.name, self.head, self.standing, self.agrees)

    def ddl(self) -> list[str]:
        """Return what creates its tables."""
        both, by = "owner TEXT, site INTEGER", "PRIMARY KEY (owner, site"
        return [
            *super().ddl(),
            f"CREATE TABLE {self.head} (one INTEGER PRIMARY KEY, floor INTEGER NOT NULL)",
            f"INSERT INTO {self.head} VALUES (1, 0)",
            f"CREATE TABLE {self.standing} ({both}, input INTEGER, seq INTEGER, {by}, input)) WITHOUT ROWID",
            f"CREATE TABLE {self.agrees} ({both}, {by})) WITHOUT ROWID",
        ]

    def standings(self, connection: sqlite3.Connection) -> dict[str, dict[tuple[int, int], int]]:
        """Return where each owner stands."""
        found: dict[str, dict[tuple[int, int], int]] = {}
        stands = f"SELECT owner, input, site, seq FROM {self.standing}"
        for owner, place, site, seq in connection.execute(stands):
            found.setdefault(owner, {})[place, site] = seq
        return found

    def agreeing(self, connection: sqlite3.Connection, site: int) -> set[str]:
        """Return the owners of which this store has what a site had when it was last read."""
        found = connection.execute(f"SELECT owner FROM {self.agrees} WHERE site = ?", (site,))
        return {owner for (owner,) in found}

    def stand(self, connection: sqlite3.Connection, standings: Mapping[str, Owned]) -> None:
        """Owners stand here now, and what was said of them before is void."""
        owners = [(owner,) for owner in standings]
        for table in (self.standing, self.agrees):
            connection.executemany(f"DELETE FROM {table} WHERE owner = ?", owners)
        connection.executemany(
            f"INSERT INTO {self.standing} (owner, input, site, seq) VALUES (?, ?, ?, ?)",
            [(owner, *key, seq) for owner, found in standings.items() for key, seq in found.items()],
        )

    def agree(
        self, connection: sqlite3.Connection, site: int, owners: Iterable[str], others: Iterable[str]
    ) -> None:
        """Note of which owners this store has what a site has, and of which others it has not."""
        connection.executemany(
            f"INSERT OR IGNORE INTO {self.agrees} VALUES (?, ?)", [(owner, site) for owner in owners]
        )
        connection.executemany(
            f"DELETE FROM {self.agrees} WHERE owner = ? AND site = ?", [(owner, site) for owner in others]
        )


class Tables(NamedTuple):
    """What is declared of a stream: its entries, their change, and those that arrive."""

    table: StateTable
    delta: str
    arrived: str
    head: str


def declared(circuit: Circuit, partials: Partials, name: str) -> Tables:
    """Declare the tables of a stream's entries."""
    schema, width = partials.plan.schema, partials.width
    behind = tuple(f"v{place} {column_type(field.type)}" for place, field in enumerate(schema[width:]))
    extras = (*behind, "alive INTEGER NOT NULL", "version INTEGER NOT NULL")
    table = StateTable(internal(name), schema[:width], extras, zero="")
    circuit.states.add(table.name)
    delta = circuit.scratch(f"d_{name}", len(schema))
    arrived = circuit.scratch(f"a_{name}", len(schema), ("alive",))
    return Tables(table, delta, arrived, internal(f"{name}_head"))


def received_partials(circuit: Circuit, partials: Partials, number: int) -> ReceivedPartials:
    """Declare the tables of partial aggregates that come from elsewhere; the number is the program's."""
    name = f"par{number}"
    standing, agrees = (internal(f"{name}_{what}") for what in ("standing", "agrees"))
    return ReceivedPartials(partials, *declared(circuit, partials, name), standing, agrees)


def _listed(owners: Iterable[str]) -> str:
    return json.dumps(sorted(owners))
