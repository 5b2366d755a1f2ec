"""DISTINCT, INTERSECT and EXCEPT: how often a row is there before and after says whether it comes or goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.language.expressions import Call, Expression
from everview.language.plan import Distinct, Except, Filter, Intersect, Plan, UnionAll
from everview.language.types import BIGINT
from everview.planner.circuit.parts import Keeping, Kept, Lookup, Operator, changed_scan, found_scan
from everview.planner.circuit.weighted import (
    ONE,
    ZERO,
    columns,
    compare,
    minus,
    positive,
    project,
    sum_up,
    times,
    without,
)

if TYPE_CHECKING:
    from everview.planner.circuit.build import Builder

__all__ = ["distinct", "set_operation"]


def distinct(builder: Builder, name: str, plan: Distinct) -> Operator:
    """A row comes with its first copy and goes with its last."""
    kept = _all_columns(builder, plan.input)
    counted = sum_up(_counts(kept, (0, 1), 2), len(plan.schema))
    before, after = columns(counted)[-2:]
    return _operator(name, plan, "Distinct", (kept,), counted, positive(before), positive(after))


def set_operation(builder: Builder, name: str, plan: Intersect | Except) -> Operator:
    """The multiplicities on both sides give the row's own, before and after."""
    left, right = _all_columns(builder, plan.left), _all_columns(builder, plan.right)
    both = UnionAll((_counts(left, (0, 1), 4), _counts(right, (2, 3), 4)))
    counted = sum_up(both, len(plan.schema))
    old_left, new_left, old_right, new_right = columns(counted)[-4:]
    title = f"{type(plan).__name__}{' all' if plan.all else ''}"
    before, after = _often(plan, old_left, old_right), _often(plan, new_left, new_right)
    return _operator(name, plan, title, (left, right), counted, before, after)


def _often(plan: Intersect | Except, left: Expression, right: Expression) -> Expression:
    match plan:
        case Intersect(all=True):
            return Call("least", (left, right), BIGINT)
        case Intersect():
            return times(positive(left), positive(right))
        case Except(all=True):
            return Call("greatest", (minus(left, right), ZERO), BIGINT)
        case Except():
            return times(positive(left), minus(ONE, positive(right)))


def _all_columns(builder: Builder, flat: Plan) -> Kept:
    return builder.keep(flat, columns(flat))


def _counts(kept: Kept, places: tuple[int, int], width: int) -> Plan:
    """Found rows count before and after, changes after only; `places` of the `width` counts are theirs."""

    def counting(rows: Plan, *at: int) -> Plan:
        *own, weight = columns(rows)
        return project(rows, (*own, *(weight if place in at else ZERO for place in range(width))))

    return UnionAll((counting(found_scan(kept), *places), counting(changed_scan(kept), places[1])))


def _operator(
    name: str,
    plan: Plan,
    title: str,
    kept: tuple[Kept, ...],
    counted: Plan,
    before: Expression,
    after: Expression,
) -> Operator:
    weight = minus(after, before)
    change = project(counted, (*columns(counted)[: len(plan.schema)], weight))
    seen = Filter(change, compare(columns(change)[-1], "<>", ZERO))
    lookups = tuple(Lookup(wanted, _keys(changed)) for wanted in kept for changed in kept)
    return Operator(name, plan.schema, title, Keeping.DELTA, lookups, (), seen)


def _keys(kept: Kept) -> Plan | None:
    return without(changed_scan(kept)) if kept.keys else None
