"""Deriving: what a site that holds the relations tells of a branch that joins. Nothing is stored for it.

The version of a derivation is the greatest version of the rows it is made from, and each is found from the
first position that has it: the *driver*. Every driver is a run: its rows in the order of their versions, rows
at earlier positions older, rows at later ones not younger. So every derivation comes once. One over a row
that comes, or comes to be shown, comes after the place that a reader has reached: such a row has a new
version.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import cached_property

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.conditions import conditions
from everview.engines.sqlite.circuits.names import BY
from everview.engines.sqlite.circuits.select import Condition, Select, Source
from everview.engines.sqlite.derived.telling import Most, Place, Told
from everview.engines.sqlite.measuring import Bound, fetch, long_columns
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.ledger import PARTITIONS, VECTORS
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.language.expressions import conjunction
from everview.language.plan import Schema
from everview.planner.branches import Branch
from everview.planner.cut import Core


@dataclass
class DrivenRows:
    """The derivations of a branch whose greatest version is first found at one position."""

    circuit: Circuit
    number: int
    branch: Branch
    schema: Schema
    atoms: tuple[StoredRows, ...]
    driver: int

    @cached_property
    def _select(self) -> tuple[Select, tuple[str, ...]]:
        """The derived rows, the dots and the version; and what they are ordered by."""
        aliases = [self.circuit.names.alias() for _ in self.atoms]
        joined: Select | None = None
        for position, (alias, stored) in enumerate(zip(aliases, self.atoms, strict=True)):
            leads = position == self.driver
            source = Source(stored.table.name, alias, stored=True, delta=leads, partial=stored.partial)
            shown = (Condition(f"{alias}.{stored.partial}"),) if stored.partial else ()
            cells = tuple(f"{alias}.{column}" for column in stored.table.columns)
            atom = Select((source,), cells, where=shown)
            joined = atom if joined is None else joined.cross(atom)
        assert joined is not None
        mine = aliases[self.driver]
        older = [
            Condition(f"{alias}.version {'<' if position < self.driver else '<='} {mine}.version")
            for position, alias in enumerate(aliases)
            if position != self.driver
        ]
        made = [compile_expression(e, joined.columns) for e in self.branch.expressions]
        joined = joined.filter(*conditions(conjunction(self.branch.conditions), joined.columns), *older)
        others = [f"{alias}.dot" for alias in aliases if alias != mine]
        order = (f"{mine}.version", f"{mine}.dot", *others)
        return joined.project((*made, *(f"{alias}.dot" for alias in aliases), order[0])), order

    def ddl(self) -> list[str]:
        """Return what creates the indexes by which the driver's rows are found, and from them the others."""
        made: dict[str, None] = {}

        def wanted(source: Source, by: tuple[str, ...]) -> None:
            where = f" WHERE {source.partial}" if source.partial else ""
            index = f"{source.table}{BY}{'_'.join(by)} ON {source.table} ({', '.join(by)}){where}"
            made[f"CREATE INDEX IF NOT EXISTS {index}"] = None

        self._select[0].sql(on_index=wanted)
        table = self.atoms[self.driver].table.name
        return [f"CREATE INDEX IF NOT EXISTS {table}_version ON {table} (version, dot)", *made]

    def _sql(self, width: int) -> str:
        """What is beyond a place of so many numbers."""
        select, order = self._select
        marks = ", ".join("?" * width)
        beyond = Condition(f"({', '.join(order[:width])}) > ({marks})")
        tail = f"ORDER BY {', '.join(order)} LIMIT ?"
        return select.filter(beyond).sql(columns=select.columns, tail=tail)

    @cached_property
    def _first(self) -> str:
        return self._sql(1)

    @cached_property
    def _next(self) -> str:
        return self._sql(len(self.atoms) + 1)

    @property
    def width(self) -> int:
        """How many values a derivation has."""
        return len(self.schema) + len(self.atoms)

    def read(self, connection: sqlite3.Connection, since: int, after: Place, most: Most) -> Told:
        """Return derivations of versions above `since`, from a place on."""
        if len(after) == len(self.atoms) + 1:
            found = connection.execute(self._next, (*after, most.rows))
        else:
            found = connection.execute(self._first, (max(since, *after[:1], 0), most.rows))
        rows, used = fetch(found, Bound(most.rows, most.size, long_columns(self.schema)))
        reached = None
        if rows and (len(rows) == most.rows or used >= most.size):
            *dots, version = rows[-1][len(self.schema) :]
            mine = dots.pop(self.driver)
            reached = (version, mine, *dots)
        return Told(self.number, [row[:-1] for row in rows], len(self.atoms), reached, used)


@dataclass
class DerivedCore:
    """What a site that holds the inputs of a core tells of its derivations."""

    circuit: Circuit
    core: Core
    relations: dict[str, StoredRows]

    @cached_property
    def runs(self) -> tuple[DrivenRows, ...]:
        """One for each position of a branch that joins."""
        return tuple(
            DrivenRows(
                self.circuit,
                number,
                branch,
                self.core.schema,
                tuple(self.relations[atom.name] for atom in branch.atoms),
                driver,
            )
            for number, branch in enumerate(self.core.branches)
            if len(branch.atoms) > 1
            for driver in range(len(branch.atoms))
        )

    def has_news(self, connection: sqlite3.Connection, since: int) -> bool:
        """Whether one of its inputs has changed."""
        marks = ", ".join("?" * len(self.core.inputs))
        return bool(
            connection.execute(
                f"SELECT EXISTS (SELECT 1 FROM {PARTITIONS} AS p JOIN {VECTORS} AS v "
                f"ON v.partition = p.number WHERE p.stream IN ({marks}) AND v.changed > ?)",
                (*self.core.inputs, since),
            ).fetchone()[0]
        )

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Create the indexes that its runs use."""
        for run in self.runs:
            for statement in run.ddl():
                connection.execute(statement)
