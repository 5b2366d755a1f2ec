"""Liveness: which ids of an input relation live, as a received view knows it.

It is the relation's lattice once more, over ids instead of rows: a set of ids with causal lengths, a register
of ids by key, insertions of ids. Merging, collecting and joining are the relation's own. Within the store an
id is a number; when one turns, dead to live or back, its derivations are told.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from everview.engines.sqlite.parts import Arrival, Chunk, PartColumn, Position
from everview.engines.sqlite.relations.base import StoredRelation
from everview.language.relations import Relation

Turn = Callable[[sqlite3.Connection, int], None]
"""Told that the ids in `turned` have turned, and in which commit."""

Forget = Callable[[sqlite3.Connection], None]
"""Told that the ids in `turned` are to be forgotten."""


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
    def blob(self) -> str:
        """The column of the id itself."""
        return "c0"

    @abstractmethod
    def dead(self, alias: str) -> str:
        """Return 1 for an id that is dead or not known, else 0."""

    @abstractmethod
    def naming(self, ids: str) -> str:
        """Return what gives numbers to those of some ids that have none; no more is known of them yet."""

    @abstractmethod
    def origin(self, connection: sqlite3.Connection, number: int) -> tuple[int, int] | None:
        """Return the site and the commit that made an id live, if that is known."""

    # A part of a stream.

    @property
    @abstractmethod
    def columns(self) -> tuple[PartColumn, ...]:
        """The columns of its rows on the wire."""

    def read(self, connection: sqlite3.Connection, since: int, after: Position | None, limit: int) -> Chunk:
        """Return what has grown since a version."""
        return self.lattice.read(connection, since, after, limit)

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Join what arrived, and tell the derivations of ids that turned; return how many rows grew."""
        if not arrival.rows:
            return 0
        grown = self.lattice.merge(connection, arrival)
        self._turn(connection, arrival.version)
        return grown

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
