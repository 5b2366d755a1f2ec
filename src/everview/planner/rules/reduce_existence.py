"""Reduce existence: whether there is any row is one row, or none.

R semi join S on p = R semi join distinct(project(TRUE, S)) on p, where p reads no column of S; so for anti
joins. Intuitively every row of R has the same answer, and it changes only when S becomes empty or ceases to
be so; without this rule each change of S looks at all rows of R.
"""

from __future__ import annotations

from dataclasses import replace

from everview.language.expressions import TRUE, columns_of
from everview.language.plan import Distinct, Join, JoinKind, Plan, Project
from everview.planner.facts import NOTHING_KNOWN, Facts
from everview.planner.walking import over

__all__ = ["reduce_existence"]


def reduce_existence(plan: Plan, *, facts: Facts = NOTHING_KNOWN) -> Plan:
    """The plan in which semi and anti joins that read nothing of their right input have one row there."""
    plan = over(plan, lambda child: reduce_existence(child, facts=facts))
    match plan:
        case Join(JoinKind.SEMI | JoinKind.ANTI, left, right, condition):
            reads = max(columns_of(condition), default=-1)
            if reads < len(left.schema) and frozenset() not in facts.keys(right):
                return replace(plan, right=Distinct(Project(right, (TRUE,), ("any",))))
        case _:
            pass
    return plan
