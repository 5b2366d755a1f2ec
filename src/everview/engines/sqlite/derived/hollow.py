"""Hollow inputs: an input of a view as its host keeps it, rows under the dots of the relation's own.

They are rows of the same kind, reduced, and found by dot: derivations name them so. Where a winner among rows
of one key changes, the derivations of both rows turn. A hollow input has no digest: what others have of the
relation are other values.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.statetable import StateTable
from everview.engines.sqlite.derived.reduced import Reduced
from everview.engines.sqlite.rows.add_wins import AddWinsRows
from everview.engines.sqlite.rows.bags import BagRows
from everview.engines.sqlite.rows.base import GONE, TEMPORARY, Arrived, StoredRows
from everview.engines.sqlite.rows.dots import site_of
from everview.engines.sqlite.rows.keyed import KeyedRows
from everview.engines.sqlite.rows.serving import NO_DIGEST
from everview.engines.sqlite.rows.sets import SetRows
from everview.engines.sqlite.rows.staging import pour
from everview.engines.sqlite.rows.taking import TAKING
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.relations import Semantics

Follow = Callable[[sqlite3.Connection], str]
"""Told that rows went or turned; it returns the delta that has rows for it, if it put any there."""


@dataclass(frozen=True)
class HollowRows(StoredRows):
    """What all kinds have in common."""

    reduced: Reduced = field(kw_only=True)
    turned: str = field(kw_only=True)
    """Temporary: dots of rows that came to be shown (w = 1), or ceased to (w = −1), and are still held."""
    followers: list[Follow] = field(default_factory=list, kw_only=True)

    is_summed = False

    @property
    def stream(self) -> str:
        """The name under which it travels."""
        return self.relation.name

    def ddl(self) -> list[str]:
        """Return what creates its tables: rows are found by their dots, and by keys once that is needed."""
        name, key = self.table.name, self.table.columns[: len(self.reduced.names)]
        fields = [
            f"{cell} {column_type(f.type)}{'' if f.nullable else ' NOT NULL'}"
            for cell, f in zip(self.table.columns, self.table.schema, strict=True)
        ]
        fields += [f"{extra} INTEGER NOT NULL" for extra in self.extras]
        listed = ", ".join(["dot INTEGER PRIMARY KEY", *fields, "version INTEGER NOT NULL"])
        if not key:
            return [f"CREATE TABLE {name} ({listed})"]
        return [
            f"CREATE TABLE {name} ({listed})",
            f"CREATE TABLE {self.held} ({listed})",
            f"CREATE INDEX {self.held}_row ON {self.held} ({', '.join(key)})",
        ]

    def term(self, alias: str) -> str:
        """Return any term: nothing is summed up."""
        return "0"

    def check(self, columns: Sequence[Sequence[Any]]) -> None:
        """Raise WireError for NULLs where the view has none."""
        self.reduced.check(columns)

    def remove(self, connection: sqlite3.Connection, version: int) -> None:
        """Remove the rows that are named in `GONE`; the delta holds what circuits have to hear of."""
        if self.reduced.payloads or self.is_crowded(connection):
            super().remove(connection, version)
        else:
            connection.execute(f"DELETE FROM {self.table.name} WHERE dot IN (SELECT dot FROM {GONE})")

    def merge(
        self, connection: sqlite3.Connection, arrived: Arrived, *, unless: str = ""
    ) -> tuple[int, tuple[int, int]]:
        """Mostly the rows are one site's, and all of them go straight into the table."""
        ends = min(arrived.dots), max(arrived.dots)
        self._index(connection, ends, arrived.version)
        if not unless and self._is_free(connection, ends):
            names = ", ".join(("version", "dot", *self.cells))
            given = [arrived.dots, *arrived.columns]
            into = f"INSERT OR IGNORE INTO {self.table.name} ({names})"
            count = pour(connection, lambda rows: f"{into} {rows}", given, arrived.version)
            if count == len(arrived.dots):
                if self.reduced.payloads:
                    connection.execute(self._appear, ends)
                return count, NO_DIGEST
        return super().merge(connection, arrived, unless=unless)

    def _is_free(self, connection: sqlite3.Connection, ends: tuple[int, int]) -> bool:
        """Whether there is no row between two dots of one site."""
        least, most = ends
        between = f"SELECT EXISTS (SELECT 1 FROM {self.table.name} WHERE dot BETWEEN ? AND ?)"
        return site_of(least) == site_of(most) and not connection.execute(between, ends).fetchone()[0]

    @cached_property
    def _appear(self) -> str:
        """Put the rows between two dots into the delta."""
        return (
            f"INSERT INTO {self.delta} ({self._listed('w')}) SELECT {self._listed('1')} "
            f"FROM {self.table.name} WHERE dot BETWEEN ? AND ? AND {self.is_shown()}"
        )

    def _index(self, connection: sqlite3.Connection, ends: tuple[int, int], version: int) -> None:
        """Find rows by their keys from now on, if these are another site's than those that are here.

        A site replaces the rows that it sees, so no two rows of one site have one key.
        """
        name, key = self.table.name, self.table.key()
        there = f"SELECT 1 FROM sqlite_master WHERE name = '{name}_row'"
        if not self.reduced.names or connection.execute(there).fetchone():
            return
        both = f"SELECT (SELECT min(dot) FROM {name}), (SELECT max(dot) FROM {name})"
        dots = [*ends, *filter(None, connection.execute(both).fetchone())]
        if site_of(min(dots)) == site_of(max(dots)):
            return
        listed = ", ".join(key)
        twice = f"SELECT {listed} FROM {name} GROUP BY {listed} HAVING count(*) > 1"
        if connection.execute(f"INSERT INTO {self.touched} {twice}").rowcount:  # of no honest site
            self.settle(connection, version)
        connection.execute(f"CREATE UNIQUE INDEX {name}_row ON {name} ({listed})")

    def net(self, connection: sqlite3.Connection) -> None:
        """Where no circuit reads them nothing need be taken out."""
        if self.reduced.payloads:
            super().net(connection)  # type: ignore[safe-super]

    def note_turns(self, connection: sqlite3.Connection) -> None:
        """Note them for the derivations."""
        connection.execute(
            f"INSERT INTO {self.turned} SELECT dot, iif(old = 2, 1, -1) FROM {self.scratch} "
            f"WHERE old IN (1, 2) AND {self.is_shown()}"
        )

    def follow(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """Tell the derivations, which name its rows."""
        changed = [follow(connection) for follow in self.followers]
        connection.execute(f"DELETE FROM {self.turned}")
        return tuple(dict.fromkeys(delta for delta in changed if delta))

    def is_named(self, dot: str, *, beside: bool) -> str:
        """Return the condition that a dot is that of a row of the table, or of one that is held beside it."""
        table = self.held if beside else self.table.name
        return f"EXISTS (SELECT 1 FROM {table} AS h WHERE h.dot = {dot} AND {self.is_shown('h')})"


@dataclass(frozen=True)
class HollowSets(HollowRows, SetRows):
    """Ids of tuples, and their causal lengths."""


@dataclass(frozen=True)
class HollowKeyed(HollowRows, KeyedRows):
    """Ids of keys, and the stamps of their rows."""


@dataclass(frozen=True)
class HollowAddWins(HollowRows, AddWinsRows):
    """Ids of tuples."""


@dataclass(frozen=True)
class HollowBags(HollowRows, BagRows):
    """Dots alone."""


_KINDS: dict[Semantics, type[HollowRows]] = {
    Semantics.SET: HollowSets,
    Semantics.KEYED: HollowKeyed,
    Semantics.BAG: HollowBags,
    Semantics.ADD_WINS: HollowAddWins,
}


def hollow_rows(circuit: Circuit, reduced: Reduced, name: str) -> HollowRows:
    """Declare the tables, the delta and the scratch tables of a hollow input under a name."""
    circuit.temporary.update({**TEMPORARY, **TAKING})
    relation, key = reduced.relation, columns(len(reduced.names))
    kind = _KINDS[relation.semantics]
    extra = kind.extras_of(relation)
    unique = tuple(range(len(key))) if key else None
    table = StateTable(internal(name), relation.schema, extra, zero="", unique=unique)
    circuit.states.add(table.name)
    touched = [f"k{place}" for place in range(max(len(key), 1))]
    return kind(
        relation,
        table,
        circuit.scratch(f"d_{name}", relation.schema, ("w", *extra, "dot")),
        circuit.scratch(f"o_{name}", relation.schema, (*extra, "dot", "version", "old")),
        circuit.scratch(f"k_{name}", (), (*touched, f"PRIMARY KEY ({', '.join(touched)})")),
        reduced=reduced,
        turned=circuit.scratch(f"t_{name}", (), ("dot", "w")),
    )
