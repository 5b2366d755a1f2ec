"""Drop DISTINCT where no row occurs twice.

distinct(R) = R when R has a key, and distinct(distinct(R)) = distinct(R). Which plans have keys is for
`facts` to say; with a catalog it knows those of relations and views. For the same reason UNION, which is
DISTINCT over UNION ALL, needs no DISTINCT in its inputs.
"""

from __future__ import annotations

from everview.language.plan import Distinct, Plan, UnionAll
from everview.planner.facts import NOTHING_KNOWN, Facts
from everview.planner.walking import over

__all__ = ["drop_distinct"]


def drop_distinct(plan: Plan, *, facts: Facts = NOTHING_KNOWN) -> Plan:
    """The plan without DISTINCTs that change nothing."""
    plan = over(plan, lambda child: drop_distinct(child, facts=facts))
    match plan:
        case Distinct(child) if facts.is_set(child):
            return child
        case Distinct(UnionAll(inputs)) if any(isinstance(child, Distinct) for child in inputs):
            bare = (child.input if isinstance(child, Distinct) else child for child in inputs)
            return Distinct(UnionAll(tuple(bare)))
        case _:
            return plan
