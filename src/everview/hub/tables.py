"""What a hub keeps of a program: its circuit, its tables, and how the rows of each are laid out."""

from __future__ import annotations

from dataclasses import dataclass

from everview.hub.ranks import Rank
from everview.hub.relations import LatticeTable, lattice_table
from everview.hub.runs import Layout
from everview.language.expressions import Column
from everview.language.plan import Schema
from everview.language.program import Program
from everview.planner.circuit import Circuit, Kept, Operator, build_circuit
from everview.planner.circuit.parts import WEIGHT
from everview.planner.facts import Facts, catalog_of
from everview.planner.rewrite import rewrite
from everview.planner.rules.share import share

__all__ = ["Catalog", "Hashed", "catalog"]


@dataclass(frozen=True, slots=True)
class Hashed:
    """The columns whose hash a row is found by; `spread` when that is to say little (see `runs.spread`)."""

    columns: tuple[int, ...]
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tables of a program."""

    program: Program
    circuit: Circuit
    relations: tuple[LatticeTable, ...]
    layouts: dict[str, Layout]
    schemas: dict[str, Schema]

    @property
    def names(self) -> tuple[str, ...]:
        """The tables, by name."""
        return tuple(self.layouts)

    def layout(self, kept: Kept) -> Layout:
        """How kept rows are laid out."""
        return self.layouts[kept.name]

    def hashed(self, table: str) -> Hashed:
        """By which columns the rows of a table are found."""
        kept = self.circuit.kept.get(table)
        if kept is None:
            return Hashed(next(own.key for own in self.relations if own.name == table))
        if kept.keys:
            return Hashed(kept.keys)
        return Hashed(tuple(range(kept.width)), spread=bool(kept.order))

    def delta_schema(self, operator: Operator) -> Schema:
        """The columns of an operator's delta."""
        return (*operator.schema, WEIGHT)


def catalog(program: Program) -> Catalog:
    """What a hub keeps of a program."""
    facts = Facts(catalog_of(program))
    plans = {name: rewrite(view.plan, facts=facts) for name, view in program.views.items()}
    circuit = build_circuit(share(plans).plans)
    relations = tuple(map(lattice_table, program.relations.values()))
    layouts = {table.name: table.layout for table in relations}
    schemas = {table.name: table.schema for table in relations}
    for kept in circuit.kept.values():
        layouts[kept.name] = _layout(kept)
        schemas[kept.name] = kept.schema
    return Catalog(program, circuit, relations, layouts, schemas)


def _layout(kept: Kept) -> Layout:
    order = []
    for key in kept.order:
        if not isinstance(key.expression, Column):
            raise TypeError("what rows are ordered by is a column")
        order.append(Rank(key.expression.index, key.descending, key.nulls_first))
    return Layout(kept.width, tuple(order), kept.nulls, key=kept.keys if order else None)
