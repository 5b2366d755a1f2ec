"""Outer joins, taken apart: the pairs, and the rows that found no partner."""

from __future__ import annotations

from dataclasses import replace

from everview.language.expressions import Column, Expression, Literal, substitute
from everview.language.plan import Join, JoinKind, Plan, Project, UnionAll

__all__ = ["without_partner"]


def without_partner(join: Join) -> UnionAll:
    """An outer join as the pairs, and the rows of either side that are in none."""
    parts: list[Plan] = [replace(join, kind=JoinKind.INNER)]
    if join.kind in (JoinKind.LEFT, JoinKind.FULL):
        parts.append(_lonely(join.left, join.right, join.condition, before=False))
    if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
        turned = _turned(join.condition, len(join.left.schema), len(join.right.schema))
        parts.append(_lonely(join.right, join.left, turned, before=True))
    return UnionAll(tuple(parts))


def _lonely(rows: Plan, others: Plan, condition: Expression, *, before: bool) -> Plan:
    """The rows without a partner among the others, and NULLs in the others' place."""
    own = tuple(Column(i, f.type, f.name) for i, f in enumerate(rows.schema))
    nulls = tuple(Literal(None, f.type) for f in others.schema)
    own_names, null_names = (tuple(f.name for f in side.schema) for side in (rows, others))
    expressions = nulls + own if before else own + nulls
    names = null_names + own_names if before else own_names + null_names
    return Project(Join(JoinKind.ANTI, rows, others, condition), expressions, names)


def _turned(condition: Expression, left: int, right: int) -> Expression:
    """The condition of the join with its inputs exchanged."""
    return substitute(
        condition,
        lambda c: Column(c.index + right if c.index < left else c.index - left, c.type, c.name),
    )
