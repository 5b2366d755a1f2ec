"""Whether two plans denote the same bag of rows, by the reference engine."""

from __future__ import annotations

from collections import Counter

from tests.planner.generate import PROGRAM

from everview.engines.reference import evaluate


def bound(sql):
    return PROGRAM.bind_query(sql).plan


def typed(rows):
    """Rows with the type of each cell: 1 and True are not the same."""
    return Counter(tuple((type(cell), cell) for cell in row) for row in rows)


def columns(plan):
    return [(field.name, field.type) for field in plan.schema]


def bag(plan, tables):
    return typed(evaluate(plan, tables).rows)


def difference(before, after, tables):
    """What the plan after a rewrite gives too much and too little; None if it is the same."""
    one, other = bag(before, tables), bag(after, tables)
    if one == other:
        return None
    return {"lost": one - other, "new": other - one}
