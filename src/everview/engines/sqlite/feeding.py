"""Feeding: what the rows of each owner come to, computed here for sites that do not hold the rows.

It begins when somebody first asks. From then on a circuit of its own, beside that of the views, brings the
entries up to date in the commit that changes the rows, the site's own or others'; whoever never asks costs
nothing. It begins with a commit of its own, by which another process that has the store open notices. Should
rows have changed nevertheless while the entries have not, they are made anew.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.engines.sqlite.circuits.circuit import Circuit, Statement
from everview.engines.sqlite.circuits.compiler import Compiler
from everview.engines.sqlite.circuits.names import column
from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.partials import StoredPartials, declared
from everview.engines.sqlite.relations import StoredRelation
from everview.engines.sqlite.relations.keyed import KeyedRelation
from everview.planner.facts import Catalog, Facts
from everview.planner.partials import Partials

_APART = 100_000
"""So many numbers of tables are between those of two circuits."""


@dataclass(eq=False)
class Feed(StoredPartials):
    """A circuit from relations that are held here to the entries of a stream."""

    circuit: Circuit
    inputs: tuple[StoredRelation, ...]
    """In the order of `partials.inputs`."""
    is_live: bool = False
    """Whether commits keep the entries up to date."""

    def look(self, connection: sqlite3.Connection) -> None:
        """See whether it has begun in this store, as it would begin now."""
        there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        found = (
            connection.execute(there, (self.head,)).fetchone()
            and connection.execute(f"SELECT 1 FROM {self.head} WHERE layout = ?", (self._layout,)).fetchone()
        )
        self.is_live = bool(found)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Compute the entries from all rows there are."""
        for table in (self.head, *self.circuit.states):
            connection.execute(f"DROP TABLE IF EXISTS main.{table}")
        for statement in self._ddl():
            connection.execute(statement)
        for statement in self.circuit.index_ddl():  # views may have asked for the same
            connection.execute(statement.replace("CREATE INDEX", "CREATE INDEX IF NOT EXISTS", 1))
        connection.execute(
            f"INSERT INTO {self.head} SELECT 1, version, version, ? FROM {STORE}", (self._layout,)
        )
        filled: set[str] = set()
        for first in self.circuit.initial:
            connection.execute(first.sql)
            if first.fills:
                filled.add(first.fills)
        filled |= {stored.delta for stored in self.inputs if stored.stage_all(connection)}
        for table in self.circuit.run(connection, filled):
            connection.execute(f"DELETE FROM {table}")

    def is_behind(self, connection: sqlite3.Connection) -> bool:
        """Whether rows have changed, and nobody has brought the entries along."""
        (upto,) = connection.execute(f"SELECT upto FROM {self.head}").fetchone()
        return any(
            (connection.execute(f"SELECT max(version) FROM {stored.travelling}").fetchone()[0] or 0) > upto
            for stored in self.inputs
        )

    def waiting(self, connection: sqlite3.Connection) -> set[str]:
        """The owners that have versions from the future: what their rows come to depends on the clock."""
        found: set[str] = set()
        for stored in self.inputs:
            relation = stored.relation
            if isinstance(stored, KeyedRelation) and relation.owner is not None:
                owner = column(relation.columns.index(relation.owner))
                found |= {name for (name,) in connection.execute(f"SELECT {owner} FROM {stored.future}")}
        return found

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Create the temporary tables that a writing connection needs."""
        for statement in self.circuit.temporary.values():
            connection.execute(statement)

    def _ddl(self) -> list[str]:
        counts = "floor INTEGER NOT NULL, upto INTEGER NOT NULL, layout TEXT NOT NULL"
        return [
            f"CREATE TABLE {self.head} (one INTEGER PRIMARY KEY, {counts})",
            *self.ddl(),
            *self.circuit.ddl,
        ]

    @property
    def _layout(self) -> str:
        return hashlib.sha256("\n".join(sorted(self._ddl())).encode()).hexdigest()


def feeds(
    partials: Mapping[int, Partials], relations: Mapping[str, StoredRelation], catalog: Catalog
) -> dict[str, Feed]:
    """Declare what can be told of owners' rows from the relations held here; by numbers of the program."""
    made = (_feed(number, found, relations, catalog) for number, found in partials.items())
    return {feed.stream: feed for feed in made}


def _feed(number: int, partials: Partials, relations: Mapping[str, StoredRelation], catalog: Catalog) -> Feed:
    circuit = Circuit()
    inputs = tuple(relations[source] for source in partials.inputs)
    nodes = {stored.relation.name: stored.node(circuit) for stored in inputs}
    compiler = Compiler(circuit, nodes, Facts(catalog), _count=_APART * (number + 1))
    source = compiler.node(partials.plan)
    feed = Feed(partials, *declared(circuit, partials, f"feed{number}"), circuit, inputs)
    feed.follow(circuit, source)
    deltas = [branch for stored in inputs for branch in nodes[stored.relation.name].delta()]

    def noted(_changed: frozenset[str]) -> list[Statement]:
        return [Statement(f"UPDATE {feed.head} SET upto = (SELECT version FROM {STORE})")]

    circuit.step("note", "that the entries are up to date", deltas, noted, makes="")
    return feed


def live_feeds(feeds: Iterable[Feed]) -> tuple[Feed, ...]:
    """Those that every commit keeps up to date."""
    return tuple(feed for feed in feeds if feed.is_live)
