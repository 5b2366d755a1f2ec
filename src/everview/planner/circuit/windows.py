"""Windows that are joins: each row beside what its partition, taken as a whole, gives.

A join, an aggregate and the first rows of a partition are kept by delta, a window in general is not. So are
rewritten, when all calls of a window are of these kinds:

- an aggregate of the whole partition, or of all rows that are equal by the sort keys;
- first_value from the start of the partition, and last_value from its end;
- rank and dense_rank without an order, which are 1.
"""

from __future__ import annotations

from dataclasses import replace

from everview.language.aggregates import AGGREGATES, AggregateCall, SortKey, WindowCall
from everview.language.expressions import Call, Column, Expression, Literal, conjunction
from everview.language.plan import Aggregate, Filter, Join, JoinKind, Plan, Project, Window
from everview.language.types import BIGINT, BOOLEAN
from everview.planner.circuit.weighted import ONE, columns, project
from everview.planner.conditions import same

__all__ = ["as_joins", "is_joins"]


def is_joins(plan: Window) -> bool:
    """Whether every call can be written as a join."""
    return all(_is_constant(call) or _group_of(call) is not None or _is_end(call) for call in plan.calls)


def as_joins(plan: Window) -> Plan:
    """The same rows by joins."""
    joined: Plan = plan.input
    width = len(plan.input.schema)
    shown: list[Expression] = []
    for call in plan.calls:
        if _is_constant(call):
            shown.append(ONE)
            continue
        group = _group_of(call)
        keys = call.partition if group is None else group
        side = _end(plan.input, call) if group is None else _aggregated(plan.input, call, group)
        start = len(joined.schema)
        pairs = zip(keys, columns(side, start=start), strict=False)
        joined = Join(JoinKind.INNER, joined, side, conjunction([same(a, b) for a, b in pairs]))
        shown.append(columns(joined)[-1])
    return Project(joined, (*columns(joined)[:width], *shown), tuple(field.name for field in plan.schema))


def _is_constant(call: WindowCall) -> bool:
    return call.function in ("rank", "dense_rank") and not call.order


def _group_of(call: WindowCall) -> tuple[Expression, ...] | None:
    """The rows that an aggregate is over, if these are all that share some expressions."""
    if call.function not in AGGREGATES or call.frame is None:
        return None
    bounds = call.frame.start, call.frame.end
    if bounds == (None, None) or (call.frame.mode == "range" and not call.order):
        return call.partition
    if call.frame.mode == "range" and bounds == (0, 0):
        return (*call.partition, *(key.expression for key in call.order))
    return None


def _is_end(call: WindowCall) -> bool:
    """Whether it is the value of the partition's first or last row."""
    if call.frame is None or call.function not in ("first_value", "last_value"):
        return False
    edge = call.frame.start if call.function == "first_value" else call.frame.end
    return edge is None


def _aggregated(source: Plan, call: WindowCall, group: tuple[Expression, ...]) -> Plan:
    over = AggregateCall(call.function, call.arguments[0] if call.arguments else None)
    return Aggregate(source, group, (over,), tuple(f"x{i}" for i in range(len(group) + 1)))


def _end(source: Plan, call: WindowCall) -> Plan:
    turn = call.function == "last_value"
    order, ties = (tuple(_turned(key) if turn else key for key in keys) for keys in (call.order, call.ties))
    number = WindowCall("row_number", (), call.partition, order, ties, None, BIGINT)
    names = (*(field.name for field in source.schema), "row")
    numbered = Window(source, (number,), names[-1:])
    first = Filter(numbered, Call("=", (Column(len(source.schema), BIGINT), Literal(1, BIGINT)), BOOLEAN))
    return project(first, (*call.partition, call.arguments[0]))


def _turned(key: SortKey) -> SortKey:
    return replace(key, descending=not key.descending, nulls_first=not key.nulls_first)
