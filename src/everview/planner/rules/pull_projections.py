"""Pull projections: choosing columns is done after a join, not before it.

project(C, R) join S = project(C and S's columns, R join S), where C only chooses columns; so for every
kind of join and either side (a chosen column that an outer join fills up with NULL is NULL either way).

Intuitively nothing is saved by choosing columns of stored rows early, and much is lost: with the
projection gone a join reads a relation with its indexes, and a tree of joins is one join graph.
"""

from __future__ import annotations

from everview.language.expressions import Column, substitute
from everview.language.plan import Join, JoinKind, Plan, Project
from everview.planner.conditions import column
from everview.planner.walking import over

__all__ = ["pull_projections"]


def pull_projections(plan: Plan) -> Plan:
    """The plan with no choice of columns directly below a join."""
    plan = over(plan, pull_projections)
    if not isinstance(plan, Join):
        return plan
    left, left_places = _bare(plan.left)
    right, right_places = _bare(plan.right)
    if left is plan.left and right is plan.right:
        return plan
    width = len(left.schema)
    places = (*left_places, *(width + place for place in right_places))
    both = (*left.schema, *right.schema)
    condition = substitute(plan.condition, lambda c: column(both, places[c.index]))
    joined = Join(plan.kind, left, right, condition)
    shown = left_places if plan.kind in (JoinKind.SEMI, JoinKind.ANTI) else places
    names = tuple(field.name for field in plan.schema)
    if shown == tuple(range(len(joined.schema))) and names == tuple(field.name for field in joined.schema):
        return joined
    columns = tuple(column(joined.schema, place) for place in shown)
    return Project(joined, columns, names)


def _bare(plan: Plan) -> tuple[Plan, tuple[int, ...]]:
    """The plan below any choice of columns, and where these stand there."""
    if isinstance(plan, Project):
        places = tuple(e.index for e in plan.expressions if isinstance(e, Column))
        if len(places) == len(plan.expressions):
            below, further = _bare(plan.input)
            return below, tuple(further[place] for place in places)
    return plan, tuple(range(len(plan.schema)))
