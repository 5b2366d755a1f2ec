"""Lift: what a subquery says about the outer row, moved to its top.

S(r) = project(outputs(r), filter(conditions(r), P)) with a plan P that does not read r. Outputs and
conditions are over the columns of P and, still as OuterColumn, over r. Works where filters, projections
and inner joins stand between the top and the conditions; elsewhere `spread` is needed.

Intuitively this is how a person turns EXISTS into a join: the WHERE that mentions the outer table
becomes the join's ON.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from everview.language.expressions import (
    TRUE,
    Column,
    Expression,
    Literal,
    OuterColumn,
    shift,
    substitute,
    transform,
)
from everview.language.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    TopK,
    Window,
    map_expressions,
    rewrite,
)
from everview.planner.conditions import all_columns, conjuncts, is_correlated, outer_reads

__all__ = ["Lifted", "close", "lift", "same_existence", "surface"]


@dataclass(frozen=True, slots=True)
class Lifted:
    """A plan that does not read the next row out, and what is to be done for each such row."""

    plan: Plan
    outputs: tuple[Expression, ...]
    conditions: tuple[Expression, ...]


def close(expression: Expression, at: dict[int, Column]) -> Expression:
    """The expression one level further out: what it read of the next row are now these columns."""

    def one(node: Expression) -> Expression:
        match node:
            case OuterColumn(depth=1, index=index):
                return at[index]
            case OuterColumn():
                return replace(node, depth=node.depth - 1)
            case _:
                return node

    return transform(expression, one)


def surface(plan: Plan) -> Plan:
    """A subquery's plan that does not read the next row out, as a plan beside that row's own."""
    return rewrite(plan, lambda node: map_expressions(node, lambda e: close(e, {})))


def lift(plan: Plan, *, existence: bool = False) -> Lifted | None:
    """The plan lifted, or None if something stands in the way.

    With `existence` only the set of rows counts, so DISTINCT may be dropped on the way.
    """
    if not is_correlated(plan):
        return Lifted(plan, all_columns(plan.schema), ())
    match plan:
        case Filter(child, predicate):
            below = lift(child, existence=existence)
            return None if below is None else _filtered(below, predicate)
        case Project(child, expressions):
            below = lift(child, existence=existence)
            return None if below is None else replace(below, outputs=_over(below, expressions))
        case Join(JoinKind.INNER, left, right, condition):
            one, other = lift(left, existence=existence), lift(right, existence=existence)
            if one is None or other is None:
                return None
            return _filtered(_beside(one, other), condition)
        case Join(JoinKind.SEMI, left, right, condition) if existence:
            # How often a left row finds a partner does not matter here: the join might as well be inner.
            both = lift(Join(JoinKind.INNER, left, right, condition), existence=True)
            return None if both is None else replace(both, outputs=both.outputs[: len(left.schema)])
        case Join(JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI) if not is_correlated(plan.right):
            below = lift(plan.left, existence=existence)
            return None if below is None else _joined(below, plan)
        case Distinct(child) if existence:
            return lift(child, existence=True)
        case _:
            return None


def _joined(below: Lifted, node: Join) -> Lifted | None:
    """A join that keeps its left rows: conditions on these may as well be checked after it."""
    width, new_width = len(node.left.schema), len(below.plan.schema)
    right = tuple(
        Column(new_width + index, field.type, field.name) for index, field in enumerate(node.right.schema)
    )
    condition = substitute(
        node.condition, lambda c: below.outputs[c.index] if c.index < width else right[c.index - width]
    )
    if outer_reads(condition):
        return None
    kept = node.kind is JoinKind.LEFT
    plan = Join(node.kind, below.plan, node.right, condition)
    return Lifted(plan, below.outputs + (right if kept else ()), below.conditions)


def _over(below: Lifted, expressions: tuple[Expression, ...]) -> tuple[Expression, ...]:
    return tuple(substitute(e, lambda column: below.outputs[column.index]) for e in expressions)


def _filtered(below: Lifted, predicate: Expression) -> Lifted:
    plan, conditions = below.plan, list(below.conditions)
    for part in _over(below, conjuncts(predicate)):
        if outer_reads(part):
            conditions.append(part)
        else:
            plan = Filter(plan, part)
    return replace(below, plan=plan, conditions=tuple(conditions))


def _beside(left: Lifted, right: Lifted) -> Lifted:
    width = len(left.plan.schema)
    return Lifted(
        Join(JoinKind.INNER, left.plan, right.plan, TRUE),
        (*left.outputs, *(shift(e, width) for e in right.outputs)),
        (*left.conditions, *(shift(e, width) for e in right.conditions)),
    )


def same_existence(plan: Plan) -> Plan | None:
    """A plan that has a row exactly when this one has; None if this one always has a row."""
    match plan:
        case Project(child) | Distinct(child) | Window(child):
            return same_existence(child)
        case Aggregate(child, keys):
            return same_existence(child) if keys else None
        case TopK(child, _, _, limit, None) if limit is None or (
            isinstance(limit, Literal) and limit.value > 0
        ):
            return same_existence(child)
        case _:
            return plan
