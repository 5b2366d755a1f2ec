"""Sending derivations from a site that holds the relations: nothing is stored for it.

The version of a derivation is the greatest version of the rows it is made from, and each is found from the
first position that has it: the *driver*. Drivers are visited in the order of their versions; rows at earlier
positions must be older, rows at later ones not younger. So every derivation comes once, new ones come
after the place that a reader has reached, and one that is derived anew over a row that revived comes again.

A row of an add-wins relation is as old as the oldest of its insertions that lives: as with other rows, what
is known of it can only move to later versions while a reader goes through them.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.conditions import conditions
from everview.engines.sqlite.circuits.names import BY, columns
from everview.engines.sqlite.circuits.select import Condition, Select, Source
from everview.engines.sqlite.derivations.hashing import row_hasher
from everview.engines.sqlite.parts import ID, Arrival, Chunk, PartColumn, Position, Row, value
from everview.engines.sqlite.relations.base import StoredRelation
from everview.engines.sqlite.relations.entries import EntriesRelation
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.errors import WireError
from everview.language.expressions import conjunction
from everview.language.plan import Schema
from everview.planner.branches import Branch


@dataclass(frozen=True, slots=True)
class _Atom:
    """A live row of a relation in a statement: its select, its version, and its place among equals."""

    select: Select
    version: str
    place: tuple[str, ...]


def _atom(circuit: Circuit, stored: StoredRelation, *, driver: bool) -> _Atom:
    alias = circuit.names.alias()
    row = Source(stored.table.name, alias, stored=True, partial=stored.partial)
    cells = tuple(f"{alias}.{column}" for column in columns(len(stored.relation.schema)))
    live = Condition(f"{alias}.{stored.partial}")
    if not isinstance(stored, EntriesRelation):
        first = Source(row.table, alias, stored=True, delta=True, partial=stored.partial) if driver else row
        place = tuple(f"{alias}.{column}" for column in stored.place)
        return _Atom(Select((first,), cells, where=(live,)), f"{alias}.version", place)
    oldest = f"(SELECT min(o.version) FROM {stored.entries} AS o WHERE o.row = {alias}.id AND o.cl = 1)"
    if not driver:
        return _Atom(Select((row,), cells, where=(live,)), oldest, ())
    entry = circuit.names.alias()
    entries = Source(stored.entries, entry, delta=True)
    numbered = Source(row.table, alias)
    found = (
        Condition(f"{alias}.id = {entry}.row", (f"{alias}.id", f"{entry}.row")),
        Condition(f"{entry}.cl = 1 AND {entry}.version = {oldest}"),
    )
    place = tuple(f"{entry}.{column}" for column in stored.place)
    return _Atom(Select((entries, numbered), cells, where=(live, *found)), f"{entry}.version", place)


@dataclass
class SentBranch:
    """The derivations of a branch, as a part of a stream that is only read."""

    circuit: Circuit
    branch: Branch
    schema: Schema
    atoms: tuple[StoredRelation, ...]

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        """The row, then the ids."""
        return (*map(value, self.schema), *(ID for _ in self.atoms))

    def version_ddl(self) -> list[str]:
        """Return what creates the indexes by which a driver finds the other rows."""
        made: dict[str, None] = {}

        def wanted(source: Source, by: tuple[str, ...]) -> None:
            index = f"{source.table}{BY}{'_'.join(by)} ON {source.table} ({', '.join(by)})"
            made[f"CREATE INDEX IF NOT EXISTS {index} WHERE {source.partial}"] = None

        for driver in range(len(self.atoms)):
            self._select(driver)[0].sql(on_index=wanted)
        return list(made)

    def _select(self, driver: int) -> tuple[Select, tuple[str, ...]]:
        """The rows derived from one driver, its version and place; and what they are ordered by."""
        atoms = [_atom(self.circuit, s, driver=p == driver) for p, s in enumerate(self.atoms)]
        joined = atoms[0].select
        for atom in atoms[1:]:
            joined = joined.cross(atom.select)
        mine = atoms[driver]
        older = [
            Condition(f"{atom.version} {'<' if position < driver else '<='} {mine.version}")
            for position, atom in enumerate(atoms)
            if position != driver
        ]
        made = [compile_expression(e, joined.columns) for e in self.branch.expressions]
        joined = joined.filter(*conditions(conjunction(self.branch.conditions), joined.columns), *older)
        order = (mine.version, *mine.place)
        return joined.project((*made, *joined.columns, *order)), order

    @cached_property
    def _statements(self) -> list[tuple[str, str]]:
        """For each driver: the rest of a version from a place on, and the versions above one."""
        found = []
        for driver in range(len(self.atoms)):
            select, order = self._select(driver)
            version, place = order[0], order[1:]
            marks = ", ".join("?" * len(place))
            rest = Condition(f"{version} = ? AND ({', '.join(place)}) > ({marks})")
            above = Condition(f"{version} > ?")
            tail = f"ORDER BY {', '.join(order)}"
            found.append(
                (
                    select.filter(rest).sql(columns=select.columns, tail=tail),
                    select.filter(above).sql(columns=select.columns, tail=tail),
                )
            )
        return found

    def read(self, connection: sqlite3.Connection, since: int, after: Position | None, limit: int) -> Chunk:
        """Return derivations of versions above `since`, up to a driver that makes it `limit` or more."""
        if after is not None and after.key and not self._is_place(after.key):
            raise WireError("the place to go on from is malformed", where="request")
        runs = [self._run(connection, driver, since, after) for driver in range(len(self.atoms))]
        widths = [len(stored.place) + 1 for stored in self.atoms]
        found: list[Row] = []
        last: Position | None = None
        reached: Position | None = None
        for driver, row in heapq.merge(*runs, key=lambda item: (item[1][-widths[item[0]]], item[0])):
            version, *place = row[-widths[driver] :]
            here = Position(version, (driver, *place))
            if len(found) >= limit and here != last:
                reached = last
                break
            found.append(row)
            last = here
        for run in runs:
            run.close()
        return Chunk(self._named(found), reached)

    def _is_place(self, key: Row) -> bool:
        """Whether it names a driver and a place in its order; it came back over the wire."""
        driver, *place = key
        known = isinstance(driver, int) and 0 <= driver < len(self.atoms)
        return known and len(place) == len(self.atoms[driver].place)

    def _run(
        self, connection: sqlite3.Connection, driver: int, since: int, after: Position | None
    ) -> Generator[tuple[int, Row], None, None]:
        """One driver's rows, in order; SQLite finds them as they are taken."""
        rest, above = self._statements[driver]
        start = since
        if after is not None and after.version > since:
            start = after.version
            if after.key and after.key[0] == driver:
                for row in connection.execute(rest, (after.version, *after.key[1:])):
                    yield driver, row
            elif after.key and after.key[0] < driver:
                start -= 1
        for row in connection.execute(above, (start,)):
            yield driver, row

    @cached_property
    def _hashers(self) -> list[tuple[slice, int]]:
        """Where each atom's columns are in a derived row, and which position's relation hashes them."""
        start, found = len(self.schema), []
        for position, stored in enumerate(self.atoms):
            width = len(stored.relation.schema)
            found.append((slice(start, start + width), position))
            start += width
        return found

    def _named(self, rows: list[Row]) -> list[Row]:
        """Rows with ids in the place of what they were made from; a row that occurs again is hashed once."""
        width = len(self.schema)
        hashers = {stored.relation.name: row_hasher(stored.relation) for stored in self.atoms}
        known: dict[tuple[str, Row], bytes] = {}
        named = []
        for row in rows:
            ids = []
            for cells, position in self._hashers:
                key = (self.atoms[position].relation.name, row[cells])
                found = known.get(key)
                if found is None:
                    found = known[key] = hashers[key[0]](key[1])
                ids.append(found)
            named.append((*row[:width], *ids))
        return named

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Nothing is merged into what is derived."""
        raise AssertionError("a stream that is derived here is not read from elsewhere")
