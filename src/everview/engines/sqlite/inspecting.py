"""Inspecting: what a console shows of a site beside its rows, and what it costs only while it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.rows.ledger import hosted_parts
from everview.engines.sqlite.scalars.storage import load_rows
from everview.engines.sqlite.tallies import Tallied, parts_of
from everview.engines.sqlite.trials import Turn, deletion
from everview.engines.sqlite.writing import Writing
from everview.language.partitions import Choices
from everview.language.plan import (
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    UnionAll,
    Values,
    walk_plan,
)

__all__ = ["Inspection", "Kept", "Rows"]

Row = tuple[Any, ...]

SORTED = 20_000
"""So many rows are put in order to show some of them; of more, the first are shown as they lie."""

LOOKS_SECONDS = 60.0
"""For so long after a look at a plan commits are counted in its operators."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a relation or view, each once with how often it is there, and how many there are."""

    rows: list[tuple[Row, int]]
    total: int
    """With copies."""
    different: int
    ordered: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """How a view is kept: its operators, its own first → what each reads; and the last commit, if counted."""

    operators: Mapping[Plan, tuple[Plan, ...]]
    tallied: Tallied | None


class Inspection:
    """Looks at a store. All methods may be called from any thread, outside transactions."""

    def __init__(self, reading: Reading, writing: Writing) -> None:
        self._reading, self._writing = reading, writing
        self._store = writing.store

    def parts(self) -> dict[str, Choices]:
        """The values that are here of partitioned relations that are not hosted whole."""
        with self._store.exclusive():
            return hosted_parts(self._store.writer.connection)

    def hosted(self) -> list[str]:
        """The relations and views that are here."""
        return self._store.engine.hosted()

    def count(self, name: str) -> int:
        """How many rows a relation or view has."""
        return self._reading.count(name, inside=False)

    def rows(self, name: str, offset: int, limit: int) -> Rows:
        """Some rows, in order where there are not too many."""
        engine = self._store.engine
        schema = engine.program.schema(name)
        rows = engine.rows_sql(name)
        with self._store.reading(inside=False) as handle:
            read = handle.connection.execute
            total, lines = read(f"SELECT ifnull(sum(w), 0), count(*) FROM ({rows})").fetchone()
            ordered = lines <= SORTED
            listed = ", ".join(columns(len(schema)))
            order = ", ".join(f"{column} NULLS LAST" for column in columns(len(schema)))
            if ordered:  # equal rows may lie in several places
                rows = f"SELECT {listed}, sum(w) AS w FROM ({rows}) GROUP BY {listed} ORDER BY {order}"
                lines = read(f"SELECT count(*) FROM ({rows})").fetchone()[0]
            found = read(f"SELECT * FROM ({rows}) LIMIT ? OFFSET ?", (limit, offset)).fetchall()
        values = load_rows([field.type for field in schema], [row[:-1] for row in found])
        told = zip(map(tuple, values), (row[-1] for row in found), strict=True)
        return Rows(list(told), total, lines, ordered)

    def kept(self, view: str) -> Kept:
        """How a view is kept. From now on, for a while, commits are counted in its operators."""
        with self._store.exclusive():
            self._writing.tallies.follow(view, LOOKS_SECONDS)
        return Kept(parts_of(self._store.engine, view), self._writing.tallies.last.get(view))

    def without(self, relation: str, row: Row, names: Iterable[str]) -> dict[str, Turn]:
        """What would change in these relations and views if a row were deleted; nothing is."""
        return deletion(self._writing, self._store.program.relations[relation], row, names)

    def holds(self, relation: str) -> bool:
        """Whether a relation's rows are here, shown or not."""
        return relation in self._store.engine.relations

    def inputs(self, stream: str) -> tuple[str, ...]:
        """The relations that a part of a view is made from which other sites send."""
        views = self._store.engine.exchange.views.values()
        inputs = {core.name: core.inputs for kept in views for core in kept.cores}
        inputs |= {partials.name: partials.inputs for kept in views for partials in kept.partials}
        return inputs.get(stream, ())

    def is_monotone(self, name: str) -> bool:
        """Whether `why` names all that a row stands on: no other row keeps it away, no proof is chosen.

        A relation and what is received as derivations is so; a view, if its operators only select, project,
        join, unite and drop duplicates.
        """
        engine, program = self._store.engine, self._store.program
        if name in engine.received:
            declared = program.views.get(engine.received[name].core.view)
            return declared is not None and not any(isinstance(p, Fixpoint) for p in walk_plan(declared.plan))
        if name in engine.relations or name not in engine.shared:
            return name in engine.relations
        return all(self._is_monotone(plan) for plan in parts_of(engine, name))

    def _is_monotone(self, plan: Plan) -> bool:
        if isinstance(plan, Scan):
            return self.is_monotone(plan.name)
        if isinstance(plan, Join):
            return plan.kind in (JoinKind.INNER, JoinKind.SEMI)
        return isinstance(plan, Filter | Project | UnionAll | Distinct | Values)

    def is_counted(self, plan: Plan) -> bool:
        """Whether what commits change in an operator can be counted: not within a recursion."""
        engine = self._store.engine
        return plan.name in engine.nodes if isinstance(plan, Scan) else plan in engine.operators
