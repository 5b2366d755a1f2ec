"""Sending derivations from a site that holds the relations: nothing is stored for it.

The version of a derivation is the greatest version of the rows it is made from, and each is found from the
first position that has it: the *driver*. Drivers are visited in the order of their versions; rows at earlier
positions must be older, rows at later ones not younger. So every derivation comes once, new ones come
after the place that a reader has reached, and one that is derived anew over a row that revived comes again.

A page ends between two drivers. Only one driver that alone makes more than a page is told in parts, its
derivations in the order of their ids: that is the same whatever else has come or gone.

A row of an add-wins relation is as old as the oldest of its insertions that lives: as with other rows, what
is known of it can only move to later versions while a reader goes through them.
"""

from __future__ import annotations

import heapq
import sqlite3
from bisect import insort
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.conditions import conditions
from everview.engines.sqlite.circuits.names import BY, columns
from everview.engines.sqlite.circuits.select import Condition, Select, Source
from everview.engines.sqlite.derivations.hashing import Hasher, row_hasher
from everview.engines.sqlite.measuring import Bound, Weights, long_columns, total_weight, weight
from everview.engines.sqlite.parts import (
    CHUNK_BYTES,
    ID,
    Arrival,
    Chunk,
    PartColumn,
    Position,
    Row,
    value,
)
from everview.engines.sqlite.places import beyond, is_place, same_place, told
from everview.engines.sqlite.relations.base import StoredRelation
from everview.engines.sqlite.relations.entries import EntriesRelation
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.errors import WireError
from everview.language.expressions import conjunction
from everview.language.identity import ID_BYTES
from everview.language.plan import Schema
from everview.planner.branches import Branch

_MOST_CELLS = 2_000_000
"""What one driver derives is told in parts if it has more cells than that, or fills a page with bytes."""


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
    def _statements(self) -> list[dict[str, str]]:
        """For each driver: what is beyond a place of a version, or from there on, and the versions above."""
        found = []
        for driver in range(len(self.atoms)):
            select, order = self._select(driver)
            version, place = order[0], order[1:]
            marks = ", ".join("?" * len(place))
            wanted = {
                compared: Condition(f"{version} = ? AND ({', '.join(place)}) {compared} ({marks})")
                for compared in (">", ">=")
            }
            wanted["above"] = Condition(f"{version} > ?")
            tail = f"ORDER BY {', '.join(order)}"
            found.append(
                {
                    name: select.filter(condition).sql(columns=select.columns, tail=tail)
                    for name, condition in wanted.items()
                }
            )
        return found

    def read(
        self,
        connection: sqlite3.Connection,
        since: int,
        after: Position | None,
        limit: int,
        room: int = CHUNK_BYTES,
    ) -> Chunk:
        """Return derivations of versions above `since`, up to a driver that makes it `limit` or more.

        Or `room` bytes or more, of them and of what they are made from.
        """
        bound = Bound(limit, room, self._weighed)
        if after is not None and after.key:
            driver, place, mark = self._placed(after.key)
            if mark:
                return self._within(connection, after.version, driver, place, mark, bound)
        runs = [self._run(connection, driver, since, after) for driver in range(len(self.atoms))]
        widths = [len(stored.place) + 1 for stored in self.atoms]
        found: list[Row] = []
        last: Position | None = None
        before, begun, used, parted = last, 0, 0, False
        for driver, row in heapq.merge(*runs, key=lambda item: (item[1][-widths[item[0]]], item[0])):
            version, *at = row[-widths[driver] :]
            here = Position(version, (driver, *at))
            if here != last:
                if bound.is_reached(found, used):
                    break
                before, last, begun = last, here, len(found)
            elif used >= room or len(found) - begun >= self._most(limit):
                parted = True
                break
            found.append(row)
            if bound.weighed:
                used += weight(row, bound.weighed)
        else:
            last = None
        for run in runs:
            run.close()
        if parted and last is not None and not begun:
            return self._within(connection, last.version, last.key[0], _told(last.key)[1:], b"", bound)
        if parted:
            last = before
            del found[begun:]
        rows = self._named(found)
        size = total_weight(rows, long_columns(self.schema))
        return Chunk(rows, None if last is None else Position(last.version, _told(last.key)), size)

    def _placed(self, key: Row) -> tuple[int, Row, bytes]:
        """The driver of a place, its own place, and the ids that were told last; they came over the wire."""
        driver, *place = key
        mark: Any = b""
        if isinstance(driver, int) and 0 <= driver < len(self.atoms):
            count = len(self.atoms[driver].place)
            if len(place) > count + 1:
                *place, mark, _ = place
            marked = not mark or (isinstance(mark, bytes) and len(mark) == ID_BYTES * len(self.atoms))
            if marked and is_place(tuple(place), count):
                return driver, tuple(place), mark
        raise WireError("the place to go on from is malformed", where="request")

    def _within(
        self,
        connection: sqlite3.Connection,
        version: int,
        driver: int,
        place: Row,
        mark: bytes,
        bound: Bound,
    ) -> Chunk:
        """Return derivations of one driver whose ids are above a mark, the least ones."""
        width, start = len(self.atoms[driver].place), len(self.schema)
        weighed, most = long_columns(self.schema), self._most(bound.rows)
        chosen: list[tuple[bytes, Row, int]] = []
        used, whole = 0, True
        rows = connection.execute(self._statements[driver][">="], (version, *place[:width]))
        for row in rows:
            if not same_place(place, row[-width:]):
                if len(place) > width and not chosen:  # a place that was cut off may be further on
                    continue
                break
            (found,) = self._named([row])
            ids = b"".join(found[start:])
            if ids <= mark:
                continue
            size = weight(found, weighed)
            insort(chosen, (ids, found, size), key=itemgetter(0))
            used += size
            while len(chosen) > most or (len(chosen) > 1 and used - chosen[-1][2] >= bound.size):
                used -= chosen.pop()[2]
                whole = False
        rows.close()
        reached = (driver, *place) if whole else (driver, *place, chosen[-1][0], 1)
        return Chunk([found for _, found, _ in chosen], Position(version, reached), used)

    def _most(self, limit: int) -> int:
        """How many derivations of one driver are told at once."""
        return max(limit, _MOST_CELLS // len(self.columns))

    @cached_property
    def _weighed(self) -> Weights:
        """The columns of what is read that have texts or blobs: of the row, and of what it is made from."""
        read = [*self.schema, *(field for stored in self.atoms for field in stored.relation.schema)]
        return long_columns(tuple(read))

    def _run(
        self, connection: sqlite3.Connection, driver: int, since: int, after: Position | None
    ) -> Generator[tuple[int, Row], None, None]:
        """One driver's rows, in order; SQLite finds them as they are taken."""
        statements, start = self._statements[driver], since
        if after is not None and after.version > since:
            start = after.version
            if after.key and after.key[0] == driver:

                def find(compared: str, cells: Row) -> Iterator[Row]:
                    return connection.execute(statements[compared], (start, *cells))

                for row in beyond(find, tuple(after.key[1:]), len(self.atoms[driver].place)):
                    yield driver, row
            elif after.key and after.key[0] < driver:
                start -= 1
        for row in connection.execute(statements["above"], (start,)):
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

    @cached_property
    def _row_hashers(self) -> dict[str, Hasher]:
        return {stored.relation.name: row_hasher(stored.relation) for stored in self.atoms}

    def _named(self, rows: list[Row]) -> list[Row]:
        """Rows with ids in the place of what they were made from; a row that occurs again is hashed once."""
        width = len(self.schema)
        hashers = self._row_hashers
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


def _told(key: Row) -> Row:
    """A driver and its place, as they travel."""
    driver, *place = key
    return (driver, *told(tuple(place)))
