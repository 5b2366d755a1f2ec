"""The engine: a program's relations and views in one SQLite database, every view fresh after each write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.engines.sqlite.circuits.circuit import Changed, Circuit, united
from everview.engines.sqlite.circuits.compiler import Compiler
from everview.engines.sqlite.circuits.names import internal, quoted
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select
from everview.engines.sqlite.relations import StoredRelation, stored_relation
from everview.engines.sqlite.relations.base import VECTOR, VECTOR_DDL
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.parts import Arrival
from everview.engines.sqlite.scalars.public import public_sql
from everview.language.plan import Plan
from everview.language.program import Program
from everview.planner.facts import Facts, catalog_of
from everview.planner.rewrite import rewrite
from everview.planner.rules.share import share

OnChange = Callable[[sqlite3.Connection, Changed], None]


@dataclass(slots=True)
class Engine:
    """A compiled program: the tables it needs, how writes go in, and how contents are read."""

    program: Program
    circuit: Circuit = field(default_factory=Circuit)
    relations: dict[str, StoredRelation] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    """The views, rewritten one by one."""
    shared: dict[str, Plan] = field(default_factory=dict)
    """The views as they are kept: what several compute is a part of its own, kept once."""

    def __post_init__(self) -> None:
        self.circuit.temporary[f"temp.{VECTOR}"] = VECTOR_DDL
        for number, (name, relation) in enumerate(self.program.relations.items()):
            self.relations[name] = stored_relation(self.circuit, relation, number)
            self.nodes[name] = self.relations[name].node(self.circuit)
        known = catalog_of(self.program)
        facts = Facts(known)
        self.plans.update((n, rewrite(v.plan, facts=facts)) for n, v in self.program.views.items())
        self.shared.update(share(self.plans).plans)
        for name, plan in self.shared.items():
            known.setdefault(name, Facts(known).keys(plan))
        compiler = Compiler(self.circuit, self.nodes, Facts(known))
        for name, plan in self.shared.items():
            self.nodes[name] = compiler.kept(plan)

    def relation_ddl(self) -> list[str]:
        """Return what creates the tables of the relations."""
        return [statement for relation in self.relations.values() for statement in relation.ddl()]

    def view_ddl(self) -> list[str]:
        """Return what creates the tables that keep views, indexes, and the SQL views that others read."""
        return [
            *self.circuit.ddl,
            *self.circuit.index_ddl(),
            *(self._public(name) for name in self.program.names()),
        ]

    def _public(self, name: str) -> str:
        """A plain SQL view under the name that the program gives, with values as people write them."""
        schema = self.program.schema(name)
        (select,) = self.contents(name)
        shown = [
            f"{public_sql(f.type, sql)} AS {quoted(f.name)}"
            for f, sql in zip(schema, select.columns, strict=True)
        ]
        if select.weight == "1":
            return f"CREATE VIEW {quoted(name)} AS {select.sql(columns=shown)}"
        copies = internal("copies")  # a name that no column of a program has by accident
        inner = select.sql(columns=[*shown, f"{select.weight} AS {copies}"])
        names = ", ".join(quoted(f.name) for f in schema)
        return (
            f"CREATE VIEW {quoted(name)} AS WITH RECURSIVE copy ({names}, {copies}) AS ({inner} UNION ALL "
            f"SELECT {names}, {copies} - 1 FROM copy WHERE {copies} > 1) SELECT {names} FROM copy"
        )

    def contents(self, name: str) -> list[Select]:
        """Return the selects that read a relation or view."""
        reader = self.nodes[name].contents
        assert reader is not None
        return reader()

    def rows_sql(self, name: str) -> str:
        """Return the SELECT of a relation's or view's rows, as c0, c1, … and w."""
        return united(self.contents(name), self.program.schema(name))

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Create the temporary tables that a writing connection needs."""
        for statement in self.circuit.temporary.values():
            connection.execute(statement)

    def create(self, connection: sqlite3.Connection) -> None:
        """Create all tables and bring the views to what they are over no rows."""
        for statement in self.relation_ddl():
            connection.execute(statement)
        self.create_views(connection)

    def create_views(self, connection: sqlite3.Connection) -> None:
        """Create what keeps the views, and bring them to what they are over the rows that relations have."""
        for statement in self.view_ddl():
            connection.execute(statement)
        filled: set[str] = set()
        for first in self.circuit.initial:
            connection.execute(first.sql)
            if first.fills:
                filled.add(first.fills)
        # All at once: what a step reads of other relations is what they have now, less what is staged.
        filled |= {r.delta for r in self.relations.values() if r.stage_all(connection)}
        self._clear(connection, self.circuit.run(connection, filled))

    def insert(
        self,
        connection: sqlite3.Connection,
        name: str,
        rows: Sequence[Any],
        commit: Commit,
        on_change: OnChange | None = None,
    ) -> int:
        """Insert stored rows into a relation and bring all views up to date; return how many appeared.

        `on_change` is told which deltas have rows, while they have them.
        """
        relation = self.relations[name]
        count = relation.insert(connection, rows, commit)
        self.propagate(connection, (relation.delta,), on_change, shrinks=relation.replaces)
        return count

    def delete(
        self,
        connection: sqlite3.Connection,
        name: str,
        rows: Sequence[Any],
        commit: Commit,
        on_change: OnChange | None = None,
    ) -> int:
        """Delete stored rows from a relation and bring all views up to date; return how many disappeared."""
        relation = self.relations[name]
        count = relation.delete(connection, rows, commit)
        self.propagate(connection, (relation.delta,), on_change, shrinks=True)
        return count

    def merge(
        self,
        connection: sqlite3.Connection,
        name: str,
        arrival: Arrival,
        on_change: OnChange | None = None,
    ) -> int:
        """Join rows that came from another site, and bring all views up to date; return how many grew."""
        relation = self.relations[name]
        grown = relation.merge(connection, arrival)
        if grown:
            self.propagate(connection, (relation.delta,), on_change, shrinks=True)
        return grown

    def propagate(
        self,
        connection: sqlite3.Connection,
        changed: tuple[str, ...],
        on_change: OnChange | None,
        *,
        shrinks: bool,
    ) -> None:
        """Carry what is in deltas through all views, and empty them."""
        filled = self.circuit.run(connection, changed, changed if shrinks else ())
        if on_change is not None:
            on_change(connection, frozenset(filled))
        self._clear(connection, filled)

    def _clear(self, connection: sqlite3.Connection, filled: Iterable[str]) -> None:
        for table in filled:
            connection.execute(f"DELETE FROM {table}")
