"""Liveness: which ids of an input relation live, as a received view knows it.

It is the relation's lattice once more, over ids instead of rows: a set of ids with causal lengths, a register
of ids by key, insertions of ids. Merging, collecting and joining are the relation's own. Within the store an
id has a number; when one turns, dead to live or back, its derivations are told.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from everview.engines.sqlite.ids import Ids, halved, ids_of, joined
from everview.engines.sqlite.integers import Integers
from everview.engines.sqlite.parts import (
    CHUNK_BYTES,
    ID,
    OPTIONAL_ID,
    Arrival,
    Brought,
    Chunk,
    PartColumn,
    Position,
)
from everview.engines.sqlite.relations.base import StoredRelation
from everview.engines.sqlite.relations.staging import pour, poured
from everview.language.relations import Relation

Turn = Callable[[sqlite3.Connection, int], None]
"""Told that the ids in `turned` have turned, and in which commit."""

Forget = Callable[[sqlite3.Connection], None]
"""Told that the ids in `turned` are to be forgotten."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """Ids that were not known before, numbered one after the other, and which of them are dead."""

    ids: Ids
    first: int
    dead: Sequence[int]
    """Places in the table of ids."""

    def tell(self, numbers: list[int], dead: list[int]) -> None:
        """Fill in what is known, by the ids' places."""
        places, found = self.ids.places, range(self.first, self.first + len(self.ids))
        if self.ids.begin_the_table():
            numbers[: len(places)] = found
        else:
            for place, number in zip(places, found, strict=True):
                numbers[place] = number
        for place in self.dead:
            dead[place] = 1


@dataclass(slots=True)
class Liveness(ABC):
    """One part of a received view's stream: the ids of one input, and which of them live."""

    relation: Relation
    lattice: StoredRelation
    turned: str
    """Temporary: number → 1 for an id that has come to live, −1 for one that has died."""
    delta: str
    """Temporary: rows of derivations that came to count, or ceased to."""
    on_turn: list[Turn] = field(default_factory=list)
    on_forget: list[Forget] = field(default_factory=list)
    fresh: Fresh | None = None
    """What the last merge brought, if nothing of it was known before."""

    # Ids and their numbers.

    @property
    def ids(self) -> str:
        """The table of ids: the lattice's own, where that numbers them."""
        return self.lattice.table.name

    @property
    def number(self) -> str:
        """The column of an id's number."""
        return "id"

    @property
    def halves(self) -> tuple[str, str]:
        """The columns of the id itself."""
        return ("c0", "c1")

    @abstractmethod
    def dead(self, alias: str) -> str:
        """Return 1 for an id that is dead or not known, else 0."""

    @abstractmethod
    def naming(self, ids: str) -> str:
        """Return what gives numbers to those of some ids that have none; no more is known of them yet.

        `ids` is a SELECT of their halves.
        """

    @abstractmethod
    def origin(self, connection: sqlite3.Connection, number: int) -> tuple[int, int] | None:
        """Return the site and the commit that made an id live, if that is known."""

    # A part of a stream.

    @property
    @abstractmethod
    def columns(self) -> tuple[PartColumn, ...]:
        """The columns of its rows on the wire."""

    def read(
        self,
        connection: sqlite3.Connection,
        since: int,
        after: Position | None,
        limit: int,
        room: int = CHUNK_BYTES,
    ) -> Chunk:
        """Return what has grown since a version."""
        chunk = self.lattice.read(connection, since, after, limit, room)
        return Chunk([(joined(high, low), *rest) for high, low, *rest in chunk.rows], chunk.reached)

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Join what arrived, and tell the derivations of ids that turned; return how many rows grew."""
        self.fresh = None
        if not len(arrival):
            return 0
        grown = self.merge_ids(connection, arrival, self._halved(arrival))
        self._turn(connection, arrival.version)
        return grown

    def _halved(self, arrival: Arrival) -> Arrival:
        """What arrived, with two integers for each id."""
        columns: list[Sequence[Any]] = []
        for column, wanted in zip(arrival.columns, self.columns, strict=True):
            columns += halved(column) if wanted in (ID, OPTIONAL_ID) else (column,)
        return replace(arrival, columns=columns)

    def merge_ids(self, connection: sqlite3.Connection, arrival: Arrival, stored: Arrival) -> int:
        """Join what arrived, in the form of the store; return how many rows grew."""
        return self.lattice.merge(connection, stored)

    def number_ids(self, connection: sqlite3.Connection, ids: Ids) -> tuple[list[int], list[int]]:
        """Return for each id its number, and 1 if it is dead, else 0.

        An id that has come ahead of its liveness, or was forgotten, gets a number now. Every id is looked up
        once, and those that the last merge brought not at all.
        """
        if len(ids) * 8 < len(ids.table):  # a few of many: they get a table of their own
            ids = ids_of(list(ids))
        numbers: list[int] = [0] * len(ids.table)  # by the ids' places; no number is 0
        dead = [0] * len(ids.table)
        if self.fresh is not None and self.fresh.ids.table is ids.table:
            self.fresh.tell(numbers, dead)
        if 0 in numbers:
            missing = [place for place in set(ids.places) if not numbers[place]]
            self._look_up(connection, Ids(ids.table, missing), numbers, dead)
            unknown = Ids(ids.table, [place for place in missing if not numbers[place]])
            if unknown:
                pour(connection, self.naming, unknown.halves())
                self._look_up(connection, unknown, numbers, dead)
        found = list(map(numbers.__getitem__, ids.places))
        if not any(dead):  # as a rule
            return found, Integers([0] * len(found), 0, 0)
        return found, list(map(dead.__getitem__, ids.places))

    def _look_up(self, connection: sqlite3.Connection, ids: Ids, numbers: list[int], dead: list[int]) -> None:
        high, low = self.halves

        def look(values: str) -> str:
            return (
                f"SELECT a.column1, x.{self.number}, {self.dead('x')} FROM ({values}) AS a "
                f"CROSS JOIN {self.ids} AS x ON x.{high} = a.column2 AND x.{low} = a.column3"
            )

        for found in poured(connection, look, (ids.places, *ids.halves())):
            for place, number, is_dead in found:
                numbers[place], dead[place] = number, is_dead

    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        """Forget what is dead and stable, with its derivations; the floor is the relation's own affair."""
        count, _ = self.lattice.collect(connection, passed)
        return count, 0

    def garbage(self, connection: sqlite3.Connection) -> int:
        """Return how many dead rows are held."""
        return self.lattice.garbage(connection)

    # Tables.

    def ddl(self) -> list[str]:
        """Return what creates its tables."""
        return self.lattice.ddl()

    def version_ddl(self) -> list[str]:
        """Return what creates the indexes by which changes and garbage are found."""
        return self.lattice.version_ddl()

    def brought(self, connection: sqlite3.Connection, since: int, most: int) -> list[Brought]:
        """Return what commits after `since` brought, the newest first, of about `most` rows."""
        return self.lattice.brought(connection, since, most)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are the truth about these ids."""
        return self.lattice.tables

    # For the kinds.

    @abstractmethod
    def note_turns(self, connection: sqlite3.Connection) -> int:
        """Put into `turned` what the last growth turned; return how many ids that are."""

    def _turn(self, connection: sqlite3.Connection, version: int) -> None:
        if self.note_turns(connection):
            for turn in self.on_turn:
                turn(connection, version)
        connection.execute(f"DELETE FROM {self.turned}")

    def forget(self, connection: sqlite3.Connection, numbers: str, given: Sequence[int] = ()) -> int:
        """Drop the derivations over ids, a SELECT of numbers; return how many ids that are."""
        count = connection.execute(f"INSERT INTO {self.turned} SELECT *, 0 FROM ({numbers})", given).rowcount
        if count:
            for forget in self.on_forget:
                forget(connection)
        connection.execute(f"DELETE FROM {self.turned}")
        return count
