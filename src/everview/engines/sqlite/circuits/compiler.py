"""From a plan to nodes of a circuit: one function per operator, equal sub-plans once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from everview.engines.sqlite.circuits import grouping, ranked, setops
from everview.engines.sqlite.circuits import joins as outer
from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.conditions import conditions
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.recursion import Groups
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.circuits.stored import add_distinct, add_stored
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.language.expressions import Column, Expression
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Fixpoint,
    Intersect,
    Join,
    Plan,
    Project,
    RecursiveScan,
    Scan,
    Schema,
    TopK,
    UnionAll,
    Values,
    Window,
)
from everview.planner.facts import Facts

FUNCTION = "ev_"
"""How the names of our own SQL functions begin."""

BRANCHES = 4
"""How many branches contents may have and still be read in place; more are stored."""

CHANGES = 50
"""How many branches a change may have; where joins of joins make more, their result is stored in between.

SQLite takes 500 in one statement, and joins multiply them.
"""


PARTS = 32
"""How many parts of a union that has too many are stored together."""


@dataclass(slots=True)
class Compiler:
    """Builds one circuit; `scans` are the nodes of relations, and of views as they get compiled."""

    circuit: Circuit
    scans: dict[str, Node]
    facts: Facts
    _nodes: dict[Plan, Node] = field(default_factory=dict)
    _stored: dict[Plan, Node] = field(default_factory=dict)
    _groups: Groups = field(default_factory=Groups)
    _count: int = 0

    def groups(self) -> Iterator[tuple[tuple[tuple[str, ...], tuple[Plan, ...]], dict[str, Node]]]:
        """Yield the groups of recursive relations: their names and plans, and their nodes."""
        return self._groups.nodes()

    def recursion_faults(self) -> list[str]:
        """Return what finds rows of recursive relations that should not be there, or that are missing."""
        return list(self._groups.faults())

    @property
    def operators(self) -> Mapping[Plan, Node]:
        """The nodes of all plans that were compiled, those within others too."""
        return self._nodes

    def number(self) -> int:
        """Return a number for the names of one operator's tables."""
        self._count += 1
        return self._count

    def node(self, plan: Plan) -> Node:
        """Return the node of a plan; a sub-plan that occurs again is the same node."""
        if plan not in self._nodes:
            node = self._compile(plan)
            self._nodes[plan] = replace(node, is_set=node.is_set or self.facts.is_set(plan))
            if isinstance(plan, Join | UnionAll) and len(node.delta()) > CHANGES:
                self._nodes[plan] = self.stored(plan)
        return self._nodes[plan]

    def readable(self, plan: Plan) -> Node:
        """Return a node whose contents can be read, stored for that if need be."""
        node = self.node(plan)
        if node.contents is not None and len(node.contents()) <= BRANCHES:
            return node
        return self.stored(plan)

    def stored(self, plan: Plan) -> Node:
        """Return a node whose rows lie in a table of their own."""
        if plan not in self._stored:
            self._stored[plan] = add_stored(self.circuit, f"s{self.number()}", self.node(plan))
        return self._stored[plan]

    def kept(self, plan: Plan) -> Node:
        """Return a node whose rows are kept: in the table of its last operator, or else in one of its own.

        Other clients of the file read the rows too, so no function of ours may be needed to show them; and
        an expression that fails does so, and is counted, when the row is made, not when it is read.
        """
        node = self.node(plan)
        if node.contents is not None:
            selects = node.contents()
            tables = {source.table for select in selects for source in select.sources}
            plain = not any(FUNCTION in select.sql() for select in selects)
            if len(selects) == 1 and len(tables) == 1 and tables <= self.circuit.states and plain:
                return node
        return self.stored(plan)

    def keyed(self, plan: Plan, keys: Sequence[Expression]) -> tuple[Node, tuple[Expression, ...]]:
        """Return a readable node in which every key is a plain column, so that an index can serve it.

        Keys that are computed become columns of a stored copy; the second result says where each key is.
        """
        node = self.readable(plan)
        assert node.contents is not None
        if all(
            _is_plain(compile_expression(key, select.columns)) for select in node.contents() for key in keys
        ):
            return node, tuple(keys)
        width = len(plan.schema)
        computed = [key for key in keys if not isinstance(key, Column)]
        own = [Column(index, f.type, f.name) for index, f in enumerate(plan.schema)]
        names = tuple(f.name for f in plan.schema) + tuple(f"key{i}" for i in range(len(computed)))
        wide = Project(plan, (*own, *computed), names)
        places = tuple(
            key if isinstance(key, Column) else Column(width + computed.index(key), key.type) for key in keys
        )
        return self.stored(wide), places

    def _compile(self, plan: Plan) -> Node:
        match plan:
            case Scan(name):
                return self.scans[name]
            case Values():
                return self._values(plan)
            case Filter():
                return self._filter(plan)
            case Project():
                return self._project(plan)
            case UnionAll():
                return self._union(plan)
            case Join():
                return outer.compile_join(self, plan)
            case Distinct():
                source = self.node(plan.input)
                return source if source.is_set else add_distinct(self.circuit, f"n{self.number()}", source)
            case Intersect() | Except():
                return setops.compile_set_operation(self, plan)
            case Aggregate():
                return grouping.compile_aggregate(self, plan)
            case TopK():
                return ranked.compile_top_k(self, plan)
            case Window():
                return ranked.compile_window(self, plan)
            case Fixpoint():
                return self._groups.node(self, plan)
            case RecursiveScan():
                raise AssertionError(f"{plan.name} is read outside its recursion")
            case _:
                assert_never(plan)

    def _values(self, plan: Values) -> Node:
        """Constants: never change once they are there; at creation they are a change like any other."""
        table = self.circuit.scratch(f"v{self.number()}", plan.schema)
        names = columns(len(plan.schema))
        rows = [Select((), tuple(compile_expression(cell, ()) for cell in row)) for row in plan.rows]
        for row in rows:
            self.circuit.start(f"INSERT INTO {table} {row.sql()}", table)

        def delta() -> list[Select]:
            return [from_table(self.circuit.names, table, names, weight="w", stored=False, delta=True)]

        return Node(plan.schema, delta, lambda: rows, is_set=len(set(plan.rows)) == len(plan.rows))

    def _filter(self, plan: Filter) -> Node:
        source = self.node(plan.input)

        def kept(select: Select) -> Select:
            return select.filter(*conditions(plan.predicate, select.columns))

        return _linear(source, kept, source.schema, is_set=source.is_set)

    def _project(self, plan: Project) -> Node:
        source = self.node(plan.input)

        def projected(select: Select) -> Select:
            return select.project([compile_expression(e, select.columns) for e in plan.expressions])

        kept = {e.index for e in plan.expressions if isinstance(e, Column)}
        every = kept == set(range(len(source.schema)))
        return _linear(source, projected, plan.schema, is_set=source.is_set and every)

    def _union(self, plan: UnionAll) -> Node:
        if len(plan.inputs) > CHANGES:  # in parts, each of which is stored
            starts = range(0, len(plan.inputs), PARTS)
            return self._union(UnionAll(tuple(UnionAll(plan.inputs[at : at + PARTS]) for at in starts)))
        nodes = [self.node(part) for part in plan.inputs]
        if sum(len(node.delta()) for node in nodes) > CHANGES:
            nodes = [
                self.stored(part) if len(node.delta()) > 1 else node
                for part, node in zip(plan.inputs, nodes, strict=True)
            ]

        def delta() -> list[Select]:
            return [branch for node in nodes for branch in node.delta()]

        readers = [node.contents for node in nodes]

        def contents() -> list[Select]:
            return [branch for reader in readers if reader for branch in reader()]

        return Node(plan.schema, delta, contents if all(readers) else None)


def _linear(source: Node, change: Callable[[Select], Select], schema: Schema, *, is_set: bool) -> Node:
    """A node that treats every row by itself, so that changes are treated like rows."""
    reader = source.contents

    def delta() -> list[Select]:
        return [change(select) for select in source.delta()]

    def contents() -> list[Select]:
        return [change(select) for select in reader()] if reader else []

    return Node(schema, delta, contents if reader else None, is_set=is_set)


def _is_plain(sql: str) -> bool:
    return re.fullmatch(r"t\d+\.\w+", sql) is not None
