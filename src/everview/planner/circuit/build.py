"""From plans to a circuit: one function per operator, equal parts once.

Filters, projections and unions treat every row by itself, so they are no operators: they are applied to
the changes of what lies below them. All others remember something and get a name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from everview.language.aggregates import SortKey
from everview.language.expressions import Column, Expression
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Fixpoint,
    Intersect,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveScan,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
    map_inputs,
)
from everview.planner.circuit import grouping, joins, partitions, recursion, setops, windows
from everview.planner.circuit.parts import WEIGHT, Circuit, Keeping, Kept, Operator, delta_scan
from everview.planner.circuit.weighted import columns, weighted

__all__ = ["Builder", "build_circuit"]


def build_circuit(views: Mapping[str, Plan]) -> Circuit:
    """The circuit of these views, each after those it reads; their plans are rewritten and shared already.

    A view that another one reads is known to it by its name, like a relation.
    """
    builder = Builder()
    for name, plan in views.items():
        change = builder.change(builder.flat(plan))
        builder.circuit.operators[name] = Operator(name, plan.schema, "View", Keeping.DELTA, (), (), change)
        builder.circuit.views[name] = builder.keep(Scan(name, plan.schema), columns(plan))
    return builder.circuit


@dataclass(slots=True)
class Builder:
    """A circuit that is being built."""

    circuit: Circuit = field(default_factory=Circuit)
    _operators: dict[Plan, str] = field(default_factory=dict)
    _kept: dict[object, Kept] = field(default_factory=dict)

    def flat(self, plan: Plan) -> Plan:
        """The plan with Scans in place of operators: only Filter, Project and UnionAll are left above."""
        match plan:
            case Scan():
                return plan
            case Filter(Window() as numbered) if partitions.row_limit(plan) is not None:
                return self._named(replace(plan, input=map_inputs(numbered, self.flat)))
            case Filter() | Project() | UnionAll():
                return map_inputs(plan, self.flat)
            case TopK(child, limit=None, offset=None):
                # An order without a limit: the rows of a view have none.
                return self.flat(child)
            case TopK(child, limit=None):
                return self._all_but_first(plan)
            case Fixpoint():
                return recursion.shown(plan, self._group(plan))
            case Window() if windows.is_joins(plan):
                return self.flat(windows.as_joins(plan))
            case _:
                return self._named(map_inputs(plan, self.flat))

    def _named(self, plan: Plan) -> Plan:
        """The rows of an operator over flat plans, by its name."""
        if plan not in self._operators:
            name = self._operators[plan] = _named_by("o", plan)
            self.circuit.operators[name] = self._operator(name, plan)
        return Scan(self._operators[plan], plan.schema)

    def _group(self, plan: Fixpoint) -> str:
        """The operator of a group: one, whichever of its relations are shown."""
        group = replace(plan, result=plan.names[0])
        known = self.circuit.recursions
        if group not in known:
            name = known[group] = _named_by("o", group)
            made = recursion.recursion(self, name, group)  # what it reads comes before it
            self.circuit.operators[name] = made
        return known[group]

    def _all_but_first(self, plan: TopK) -> Plan:
        """OFFSET without LIMIT: all rows but the first ones, and those are a LIMIT."""
        first = replace(plan, limit=plan.offset, offset=None)
        return self.flat(Except(plan.input, first, all=True))

    def change(self, flat: Plan) -> Plan:
        """How the rows of a flat plan change: the same over the changes of its scans."""
        match flat:
            case Scan(name, schema):
                return delta_scan(name, schema)
            case Filter(child, predicate):
                return Filter(self.change(child), predicate)
            case Project(child, expressions, names):
                delta = self.change(child)
                return Project(delta, (*expressions, columns(delta)[-1]), (*names, WEIGHT.name))
            case UnionAll(inputs):
                return UnionAll(tuple(map(self.change, inputs)))
            case _:
                raise AssertionError(f"{type(flat).__name__} remembers something")

    def keep_everywhere(self, flat: Plan) -> Kept:
        """Keep the rows of a flat plan for an operator that is run apart by keys that they do not have."""
        change, width = self.change(flat), len(flat.schema)
        known = change, width, "everywhere"
        if known not in self._kept:
            kept = Kept(_named_by("k", known), change, width, (), everywhere=True)
            self._kept[known] = self.circuit.kept[kept.name] = kept
        return self._kept[known]

    def keep(
        self, flat: Plan, keys: Sequence[Expression], order: Sequence[SortKey] = (), *, nulls: bool = True
    ) -> Kept:
        """Keep the rows of a flat plan, to be found by these keys, the rows of a key in this order.

        What is computed becomes a column of its own. The weight is the one column that adds up.
        """
        wanted = [*keys, *(key.expression for key in order)]
        computed = [key for key in dict.fromkeys(wanted) if not isinstance(key, Column)]
        wide = flat
        if computed:
            names = (*(f.name for f in flat.schema), *(f"key{i}" for i in range(len(computed))))
            wide = Project(flat, (*columns(flat), *computed), names)
        width = len(flat.schema)

        def place(key: Expression) -> Column:
            return key if isinstance(key, Column) else Column(width + computed.index(key), key.type)

        ranks = tuple(replace(key, expression=place(key.expression)) for key in order)
        places = [place(key).index for key in keys]
        return self.keep_sums(self.change(wide), len(wide.schema), places, ranks, nulls=nulls)

    def keep_sums(
        self,
        change: Plan,
        width: int,
        keys: Sequence[int],
        order: tuple[SortKey, ...] = (),
        *,
        nulls: bool = True,
    ) -> Kept:
        """Keep what a change adds up to: `width` columns, and the sums behind them."""
        known = change, width, tuple(keys), order, nulls
        if known not in self._kept:
            kept = Kept(_named_by("k", known), change, width, tuple(keys), order, nulls)
            self._kept[known] = self.circuit.kept[kept.name] = kept
        return self._kept[known]

    def _operator(self, name: str, plan: Plan) -> Operator:
        match plan:
            case Values():
                first = weighted(plan, 1)
                return Operator(name, plan.schema, "Values", Keeping.DELTA, (), (), None, first)
            case Join(JoinKind.INNER):
                return joins.inner(self, name, plan)
            case Join():
                return joins.outer(self, name, plan)
            case Distinct():
                return setops.distinct(self, name, plan)
            case Intersect() | Except():
                return setops.set_operation(self, name, plan)
            case Aggregate():
                return grouping.aggregate(self, name, plan)
            case Window():
                return partitions.window(self, name, plan)
            case TopK():
                return partitions.top(self, name, plan)
            case Filter(Window()):
                return partitions.first_rows(self, name, plan)
            case RecursiveScan() | Fixpoint():
                raise AssertionError("a recursion is one operator for all of its group")
            case Scan() | Filter() | Project() | UnionAll():
                raise AssertionError(f"{type(plan).__name__} remembers nothing")
            case _:
                assert_never(plan)


def _named_by(letter: str, content: object) -> str:
    """A name for what something says: the same in every process and version that says the same."""
    return letter + hashlib.sha256(repr(content).encode()).hexdigest()[:16]
