"""Relations on SQLite: how each kind is stored, written, and valued.

A write stages its rows in the relation's delta, with weight 1 or −1, and the kind's own statements turn
that into what really changed: rows that appeared or disappeared, with the lattice value stored in the
same transaction. The delta is then carried through the circuit.

| kind | table | a row is there when |
|---|---|---|
| set | row → causal length | it is odd |
| keyed | key → the row of the last writer, or that it is deleted | it is not deleted |
| bag | row → weight | it is above 0 |
| add-wins | row → live insertions | there is one |
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.circuits.statetable import StateTable, same_row
from everview.language.relations import Relation, Semantics

_CHUNK = 250
"""Rows in one INSERT … VALUES: less than half the time a row of `executemany` takes."""


@dataclass(frozen=True)
class StoredRelation:
    """A relation's table and delta, and the statements that write to it.

    The statements are written once and take the version as a parameter: a new text for each commit would
    be parsed and planned each time, which takes longer than running it.
    """

    relation: Relation
    table: StateTable
    delta: str
    scratch: str

    @property
    def partial(self) -> str:
        """The condition under which a stored row is there, beginning with a bare column."""
        match self.relation.semantics:
            case Semantics.SET:
                return "cl & 1"
            case Semantics.KEYED:
                return "alive"
            case Semantics.BAG | Semantics.ADD_WINS:
                return "w > 0"

    @property
    def replaces(self) -> bool:
        """Whether an insertion can make other rows go."""
        return self.relation.semantics is Semantics.KEYED

    def node(self, circuit: Circuit) -> Node:
        """Return how circuits read the relation and its change."""
        names = columns(len(self.relation.schema))
        bag = self.relation.semantics is Semantics.BAG

        def delta() -> list[Select]:
            return [from_table(circuit.names, self.delta, names, weight="w", stored=False, delta=True)]

        def contents() -> list[Select]:
            weight = "w" if bag else "1"
            return [from_table(circuit.names, self.table.name, names, weight=weight, partial=self.partial)]

        return Node(self.relation.schema, delta, contents, is_set=not bag)

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all rows there are into the delta, as if they had just appeared; return how many."""
        weight = "w" if self.relation.semantics is Semantics.BAG else "1"
        return connection.execute(
            f"INSERT INTO {self.delta} SELECT {self._listed}, {weight} FROM {self.table.name} "
            f"WHERE {self.partial}"
        ).rowcount

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], version: int) -> int:
        """Insert rows; return how many appeared. The delta holds what changed."""
        stage(connection, self.delta, rows, 1)
        match self.relation.semantics:
            case Semantics.SET:
                return self._set_write(connection, len(rows), version, odd=True)
            case Semantics.KEYED:
                return self._keyed_write(connection, version, alive=True)
            case Semantics.BAG:
                self._add(connection, self._summed, version)
                return len(rows)
            case Semantics.ADD_WINS:
                return self._add_wins_insert(connection, version)

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], version: int) -> int:
        """Delete rows, of a keyed relation those with the same key; return how many disappeared."""
        stage(connection, self.delta, rows, -1)
        match self.relation.semantics:
            case Semantics.SET:
                return self._set_write(connection, len(rows), version, odd=False)
            case Semantics.KEYED:
                return self._keyed_write(connection, version, alive=False)
            case Semantics.BAG:
                return self._bag_delete(connection, version)
            case Semantics.ADD_WINS:
                return self._add_wins_delete(connection, version)

    @cached_property
    def _listed(self) -> str:
        return ", ".join(self.table.columns)

    @cached_property
    def _summed(self) -> str:
        """The staged rows, each once."""
        return f"SELECT {self._listed}, sum(w) AS w FROM {self.delta} GROUP BY {self._listed}"

    @cached_property
    def _there(self) -> str:
        """Whether the row of a staged row d is there."""
        stored, staged = ([f"{a}.{c}" for c in self.table.columns] for a in ("r", "d"))
        same = same_row(self.table.schema, stored, staged)
        return f"EXISTS (SELECT 1 FROM {self.table.name} AS r WHERE {same} AND r.{self.partial})"

    @cached_property
    def _once(self) -> str:
        """Of equal staged rows keep one."""
        first = f"SELECT min(rowid) FROM {self.delta} GROUP BY {self._listed}"
        return f"DELETE FROM {self.delta} WHERE rowid NOT IN ({first})"

    @cached_property
    def _to_odd(self) -> str:
        return self.table.upsert(
            f"SELECT {self._listed}, 1, ? FROM {self.delta}",
            ["cl = cl + 1", "version = excluded.version"],
            unless="cl & 1",
        )

    @cached_property
    def _to_even(self) -> str:
        key = ", ".join(self.table.key())
        return (
            f"UPDATE {self.table.name} SET cl = cl + 1, version = ? "
            f"WHERE ({key}) IN (SELECT {key} FROM {self.delta}) AND cl & 1"
        )

    def _set_write(self, connection: sqlite3.Connection, staged: int, version: int, *, odd: bool) -> int:
        """Mostly every staged row changes, and then they are the change; otherwise sort them out first.

        Of a single row the number of changed rows says all, so nothing needs to be taken back.
        """
        grow = self._to_odd if odd else self._to_even
        if staged == 1:
            if connection.execute(grow, (version,)).rowcount == 1:
                return 1
            connection.execute(f"DELETE FROM {self.delta}")
            return 0
        connection.execute("SAVEPOINT attempt")
        if connection.execute(grow, (version,)).rowcount == staged:
            connection.execute("RELEASE attempt")
            return staged
        connection.execute("ROLLBACK TO attempt")
        connection.execute("RELEASE attempt")
        unless = "" if odd else "NOT "
        connection.execute(f"DELETE FROM {self.delta} AS d WHERE {unless}{self._there}")
        connection.execute(self._once)
        return connection.execute(grow, (version,)).rowcount

    def _keyed_write(self, connection: sqlite3.Connection, version: int, *, alive: bool) -> int:
        """Replace the rows of the staged keys; of several rows for one key the last counts."""
        keys = self.table.key()
        last = f"SELECT max(rowid) FROM {self.delta} GROUP BY {', '.join(keys)}"
        connection.execute(f"DELETE FROM {self.delta} WHERE rowid NOT IN ({last})")
        on = " AND ".join(f"r.{key} = d.{key}" for key in keys)
        mine = ", ".join(f"r.{column}" for column in self.table.columns)
        connection.execute(
            f"INSERT INTO {self.scratch} SELECT {mine}, -1 "
            f"FROM {self.delta} AS d CROSS JOIN {self.table.name} AS r ON {on} AND r.alive"
        )
        rest = [f"{name} = excluded.{name}" for name in (*self.table.columns, "alive", "version")]
        staged = f"SELECT {self._listed}, {int(alive)}, ? FROM {self.delta}"
        connection.execute(self.table.upsert(staged, rest), (version,))
        if not alive:
            connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(f"INSERT INTO {self.delta} SELECT * FROM {self.scratch}")
        connection.execute(f"DELETE FROM {self.scratch}")
        net = f"SELECT min(rowid) FROM {self.delta} GROUP BY {self._listed} HAVING sum(w) <> 0"
        connection.execute(f"DELETE FROM {self.delta} WHERE rowid NOT IN ({net})")
        counted = f"SELECT count(*) FROM {self.delta} WHERE w {'>' if alive else '<'} 0"
        return int(connection.execute(counted).fetchone()[0])

    def _add(self, connection: sqlite3.Connection, rows: str, version: int) -> None:
        grow = self.table.upsert(
            f"SELECT *, ? FROM ({rows})", ["w = w + excluded.w", "version = excluded.version"]
        )
        connection.execute(grow, (version,))

    def _bag_delete(self, connection: sqlite3.Connection, version: int) -> int:
        """Take away one copy for each staged row, as many as there are."""
        stored, staged = ([f"{a}.{c}" for c in self.table.columns] for a in ("r", "d"))
        same = same_row(self.table.schema, stored, staged)
        held = f"max(coalesce((SELECT r.w FROM {self.table.name} AS r WHERE {same}), 0), 0)"
        taken = f"SELECT {', '.join(staged)}, max(d.w, -{held}) FROM ({self._summed}) AS d"
        connection.execute(f"INSERT INTO {self.scratch} {taken}")
        connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(f"INSERT INTO {self.delta} SELECT * FROM {self.scratch} WHERE w <> 0")
        connection.execute(f"DELETE FROM {self.scratch}")
        self._add(connection, f"SELECT * FROM {self.delta}", version)
        return -int(connection.execute(f"SELECT coalesce(sum(w), 0) FROM {self.delta}").fetchone()[0])

    def _add_wins_insert(self, connection: sqlite3.Connection, version: int) -> int:
        """Every insertion is one more; only the first makes the row appear."""
        connection.execute(f"INSERT INTO {self.scratch} {self._summed}")
        connection.execute(f"DELETE FROM {self.delta} AS d WHERE {self._there}")
        connection.execute(self._once)
        self._add(connection, f"SELECT * FROM {self.scratch}", version)
        connection.execute(f"DELETE FROM {self.scratch}")
        return int(connection.execute(f"SELECT count(*) FROM {self.delta}").fetchone()[0])

    def _add_wins_delete(self, connection: sqlite3.Connection, version: int) -> int:
        """A deletion ends every insertion that is seen."""
        connection.execute(f"DELETE FROM {self.delta} AS d WHERE NOT {self._there}")
        connection.execute(self._once)
        key = ", ".join(self.table.key())
        return connection.execute(
            f"UPDATE {self.table.name} SET w = 0, version = ? "
            f"WHERE ({key}) IN (SELECT {key} FROM {self.delta}) AND w > 0",
            (version,),
        ).rowcount


def stored_relation(circuit: Circuit, relation: Relation, number: int) -> StoredRelation:
    """Declare the table and the delta of a relation."""
    name = f"r{number}"
    delta = circuit.scratch(f"d_{name}", len(relation.schema))
    scratch = circuit.scratch(f"o_{name}", len(relation.schema))
    value = {Semantics.SET: "cl", Semantics.KEYED: "alive"}.get(relation.semantics, "w")
    extras = (f"{value} INTEGER NOT NULL", "version INTEGER NOT NULL")
    unique = relation.key_positions if relation.semantics is Semantics.KEYED else None
    table = StateTable(internal(name), relation.schema, extras, zero="", unique=unique)
    return StoredRelation(relation, table, delta, scratch)


def stage(connection: sqlite3.Connection, table: str, rows: Sequence[Sequence[Any]], weight: int) -> None:
    """Put rows into a delta, all with one weight."""
    if len(rows) == 1:
        connection.execute(_values(table, len(rows[0]), 1, weight), rows[0])
        return
    chunk = max(1, min(_CHUNK, 30_000 // max(len(rows[0]), 1))) if rows else 1
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        sql = _values(table, len(part[0]), len(part), weight)
        connection.execute(sql, list(chain.from_iterable(part)))


@lru_cache(maxsize=1024)
def _values(table: str, width: int, count: int, weight: int) -> str:
    one = f"({', '.join('?' * width)}, {weight})"
    return f"INSERT INTO {table} VALUES {', '.join([one] * count)}"
