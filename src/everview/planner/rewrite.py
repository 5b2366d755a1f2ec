"""All rewrites of a single plan, in order.

Each rule is a function Plan → Plan that keeps the bag of rows and the names and types of its columns.
Together they are applied until nothing changes; each only moves work down, drops it, or orders it, so
that happens after a round or two, and `ROUNDS` is only there to fail loudly if a rule undoes another.
`share` is no rule of this list, for it looks at all views of a program at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from everview.language.plan import Plan
from everview.planner.facts import NOTHING_KNOWN, Facts
from everview.planner.rules.canonicalize import canonicalize
from everview.planner.rules.decorrelate import check_decorrelated, decorrelate
from everview.planner.rules.drop_distinct import drop_distinct
from everview.planner.rules.order_joins import order_joins
from everview.planner.rules.prune_columns import prune_columns
from everview.planner.rules.pull_projections import pull_projections
from everview.planner.rules.push_filters import push_filters
from everview.planner.rules.reduce_existence import reduce_existence

__all__ = ["ROUNDS", "RULES", "Rule", "rewrite"]

Rule: TypeAlias = Callable[[Plan], Plan]

RULES: tuple[Rule, ...] = (
    decorrelate,
    push_filters,
    pull_projections,
    order_joins,
    drop_distinct,
    reduce_existence,
    prune_columns,
    canonicalize,
)

ROUNDS = 10


def rewrite(plan: Plan, *, facts: Facts = NOTHING_KNOWN) -> Plan:
    """The plan that engines run: no subqueries, early filters, connected joins, few columns.

    `facts` over a program's catalog let it use the keys of relations and views.
    """
    knowing: dict[Rule, Rule] = {
        decorrelate: partial(decorrelate, facts=facts),
        drop_distinct: partial(drop_distinct, facts=facts),
        reduce_existence: partial(reduce_existence, facts=facts),
    }
    for _ in range(ROUNDS):
        before = plan
        for rule in RULES:
            plan = knowing.get(rule, rule)(plan)
        if plan == before:
            check_decorrelated(plan)
            return plan
    raise AssertionError(f"the rules do not come to an end within {ROUNDS} rounds")
