"""Windows and LIMIT: a part of the rows that surely holds all that changes, after minus before.

Of a window these are the partitions that the change touches. Of a LIMIT they are the first rows in its
order, as many as it shows and one more for each row that changes; of a window whose row numbers are asked
for up to a limit, the first rows of the touched partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.language.expressions import Call, Column, Expression, Literal, Parameter
from everview.language.plan import Filter, Plan, Scan, TopK, UnionAll, Window, map_inputs
from everview.planner.circuit.parts import (
    Keeping,
    Kept,
    Lookup,
    Operator,
    changed_scan,
    found_scan,
    rows_scan,
)
from everview.planner.circuit.weighted import columns, consolidated, difference, project
from everview.planner.conditions import conjuncts

if TYPE_CHECKING:
    from everview.planner.circuit.build import Builder

__all__ = ["first_rows", "row_limit", "top", "window"]


def window(builder: Builder, name: str, plan: Window) -> Operator:
    """The partitions that all calls share; without any, all rows."""
    keys = _shared_partition(plan)
    kept = builder.keep(plan.input, keys)
    lookup = Lookup(kept, _keys(kept) if keys else None)
    keeping = Keeping.PARTITION if keys else Keeping.FULL
    return _operator(name, plan, kept, lookup, keeping)


def top(builder: Builder, name: str, plan: TopK) -> Operator:
    """The rows that count are the first ones."""
    shown = _number(plan.limit) + (_number(plan.offset) if plan.offset is not None else 0)
    kept = builder.keep(plan.input, (), (*plan.order, *plan.ties))
    lookup = Lookup(kept, _keys(kept), shown)
    return _operator(name, plan, kept, lookup, Keeping.DELTA)


def row_limit(plan: Filter) -> int | None:
    """How many rows of each partition a filter on their row numbers lets through."""
    if not isinstance(plan.input, Window) or [c.function for c in plan.input.calls] != ["row_number"]:
        return None
    place = len(plan.input.input.schema)
    limits = []
    for part in conjuncts(plan.predicate):
        match part:
            case Call("<=" | "=", (Column(at), Literal(int() as most))) if at == place:
                limits.append(most)
            case Call("<", (Column(at), Literal(int() as most))) if at == place:
                limits.append(most - 1)
            case _:
                pass
    return max(0, min(limits)) if limits else None


def first_rows(builder: Builder, name: str, plan: Filter) -> Operator:
    """The first rows of each partition."""
    window, limit = plan.input, row_limit(plan)
    if not isinstance(window, Window) or limit is None:
        raise TypeError("a filter on row numbers")
    (call,) = window.calls
    kept = builder.keep(window.input, call.partition, (*call.order, *call.ties))
    lookup = Lookup(kept, _keys(kept), limit)
    return _operator(name, plan, kept, lookup, Keeping.DELTA)


def _number(count: Literal | Parameter | None) -> int:
    if not isinstance(count, Literal):
        raise TypeError("a view has no parameters, and an OFFSET alone is a difference")
    return int(count.value)


def _keys(kept: Kept) -> Plan:
    changed = changed_scan(kept)
    return project(changed, [columns(changed)[place] for place in kept.keys])


def _operator(
    name: str, plan: Window | TopK | Filter, kept: Kept, lookup: Lookup, keeping: Keeping
) -> Operator:
    source = plan.input.inputs[0] if isinstance(plan, Filter) else plan.input
    width = len(source.schema)
    every = columns(found_scan(kept))
    shown = *every[:width], every[-1]
    own, change = project(found_scan(kept), shown), project(changed_scan(kept), shown)
    before, after = f"{name}@before", f"{name}@after"

    def over(step: str) -> Plan:
        rows = rows_scan(Scan(step, change.schema))
        if isinstance(plan, Filter):
            return map_inputs(plan, lambda window: map_inputs(window, lambda _: rows))
        return map_inputs(plan, lambda _: rows)

    return Operator(
        name,
        plan.schema,
        type(plan).__name__ if isinstance(plan, Window) else "Top",
        keeping,
        (lookup,),
        ((before, own), (after, consolidated(UnionAll((own, change))))),
        difference(over(after), over(before)),
    )


def _shared_partition(plan: Window) -> tuple[Expression, ...]:
    """The expressions that every call partitions by: rows that differ in them never meet."""
    first, *others = (call.partition for call in plan.calls)
    return tuple(part for part in first if all(part in other for other in others))
