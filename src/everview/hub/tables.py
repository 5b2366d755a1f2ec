"""What a hub keeps of a program: its circuit, its tables, and how the rows of each are laid out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from everview.engines.spark.hashing import Hashes, hash_columns
from everview.engines.spark.identity import tuple_ids
from everview.hub.groups import Group, groups_of
from everview.hub.ranks import Rank
from everview.hub.relations import LatticeTable, lattice_table
from everview.hub.runs import Layout, spread
from everview.hub.wording import Words, words_of
from everview.language.expressions import Column
from everview.language.plan import Fixpoint, Plan, Scan, Schema
from everview.language.relations import Relation, Semantics
from everview.planner.circuit import Circuit, Kept, build_circuit
from everview.planner.rules.share import share
from everview.planner.written import written_of

if TYPE_CHECKING:
    from everview.language.program import Program  # it brings the parser, which no task needs

__all__ = ["Catalog", "Hashed", "catalog"]

GroupKey = tuple[tuple[str, ...], tuple[Plan, ...]]


@dataclass(frozen=True, slots=True)
class Hashed:
    """The columns whose hash a row is found by; `spread` when that is to say little (see `runs.spread`).

    Of a `relation`'s whole rows it is the beginning of their ids, which nobody can choose: else some rows of
    a hostile site would all go to one task.
    """

    columns: tuple[int, ...]
    spread: bool = False
    relation: Relation | None = None

    def of_keys(self, schema: Schema, keys: pa.Table) -> Hashes:
        """The hash of keys alone, of these columns."""
        return replace(self, columns=tuple(range(len(schema))), spread=False).of(schema, keys)

    def of(self, schema: Schema, rows: pa.Table) -> Hashes:
        """The hash of each row."""
        chosen = [rows.column(place) for place in self.columns]
        if self.relation is not None:
            return tuple_ids(self.relation, chosen, rows.num_rows).view(">i8")[::2].astype(np.int64)
        found = hash_columns(chosen, [schema[place] for place in self.columns], rows.num_rows)
        return spread(found) if self.spread else found


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tables of a program."""

    program: Program
    circuit: Circuit
    relations: tuple[LatticeTable, ...]
    layouts: dict[str, Layout]
    schemas: dict[str, Schema]
    groups: tuple[Group, ...]
    plans: dict[str, Plan]
    """What each view is, over relations and other views, as a site has it too."""
    words: Words
    """What operators and tables are called where people read of them."""
    recursions: dict[GroupKey, str]
    """The operators of recursive groups, by the names and plans that these have in `plans`."""
    ids: bool = True
    """Whether whole rows of relations are found by their ids; older stores have another hash."""

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
            own = next(own for own in self.relations if own.name == table)
            named = self.ids and own.relation.semantics is not Semantics.KEYED
            return Hashed(own.key, relation=own.relation if named else None)
        if kept.keys:
            return Hashed(kept.keys)
        return Hashed(tuple(range(kept.width)), spread=bool(kept.order))

    def source_schema(self, name: str) -> Schema:
        """The columns of a relation or an operator."""
        if name in self.program.relations:
            return self.program.relations[name].schema
        return self.circuit.operators[name].schema


def catalog(program: Program) -> Catalog:
    """What a hub keeps of a program."""
    plans = dict(written_of(program).plans)
    shared = share(plans).plans
    circuit = build_circuit(shared)
    relations = tuple(map(lattice_table, program.relations.values()))
    layouts = {table.name: table.layout for table in relations}
    schemas = {table.name: table.schema for table in relations}
    for kept in circuit.kept.values():
        layouts[kept.name] = _layout(kept)
        schemas[kept.name] = kept.schema
    groups, words = groups_of(program, circuit), words_of(relations, circuit)
    recursions = _recursions(plans, shared, circuit)
    return Catalog(program, circuit, relations, layouts, schemas, groups, plans, words, recursions)


def _recursions(
    plans: Mapping[str, Plan], shared: Mapping[str, Plan], circuit: Circuit
) -> dict[GroupKey, str]:
    """What views share was taken out of their plans; the recursions in them stand in the same order."""

    def groups(plan: Plan, inside: Mapping[str, Plan]) -> Iterator[Fixpoint]:
        if isinstance(plan, Scan) and plan.name in inside:
            yield from groups(inside[plan.name], inside)
        if isinstance(plan, Fixpoint):
            yield plan
        for child in plan.inputs:
            yield from groups(child, inside)

    taken = {name: plan for name, plan in shared.items() if name not in plans}
    found: dict[GroupKey, str] = {}
    for name, plan in plans.items():
        for own, made in zip(groups(plan, {}), groups(shared[name], taken), strict=True):
            found[own.names, own.plans] = circuit.recursions[replace(made, result=made.names[0])]
    return found


def _layout(kept: Kept) -> Layout:
    order = []
    for key in kept.order:
        if not isinstance(key.expression, Column):
            raise TypeError("what rows are ordered by is a column")
        order.append(Rank(key.expression.index, key.descending, key.nulls_first))
    return Layout(kept.width, tuple(order), kept.nulls, key=kept.keys if order else None)
