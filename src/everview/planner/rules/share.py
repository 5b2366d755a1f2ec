"""Share: a sub-plan that several views compute is computed once.

Replacing a sub-plan by a Scan of a view with that plan changes nothing. Worth it are sub-plans for which
an engine keeps state or does more than a row at a time: a join, DISTINCT, an aggregate, a window, a
LIMIT, INTERSECT, EXCEPT; not bare selections and projections. The largest are taken first, so that what
occurs only inside a shared part is not shared once more.

Two plans are the same part when they differ only in the names of columns: a projection gives a view its
own names back. A part that is the plan of a view is that view; any other is named by a hash of what it
says, so that the same part has the same name in every program.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from everview.language.correlation import scans_of
from everview.language.expressions import Column, Expression, OuterColumn, transform
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Fixpoint,
    Intersect,
    Join,
    Plan,
    Project,
    Scan,
    TopK,
    Window,
    free_names,
    map_expressions,
    map_inputs,
    rewrite,
    walk_plan,
)
from everview.planner.conditions import all_columns
from everview.planner.rules.canonicalize import canonicalize

__all__ = ["Shared", "share"]


@dataclass(frozen=True, slots=True)
class Shared:
    """All plans by name, each after those it reads; `parts` are the names that are no views."""

    plans: Mapping[str, Plan]
    parts: frozenset[str]


def share(views: Mapping[str, Plan]) -> Shared:
    """The views with equal sub-plans taken out."""
    plans = {name: canonicalize(plan) for name, plan in views.items()}
    parts: set[str] = set()
    while (found := _largest(plans)) is not None:
        nameless, first = found
        owner = next((name for name, plan in plans.items() if _nameless(plan) == nameless), None)
        if owner is None:
            digest = hashlib.sha256(repr(nameless).encode()).hexdigest()[:16]
            owner = f"shared_{digest}"
            parts.add(owner)
            plans[owner] = first
        source = Scan(owner, plans[owner].schema)
        plans = {
            name: plan if name == owner else _replaced(plan, nameless, source) for name, plan in plans.items()
        }
    return Shared(_in_order(plans), frozenset(parts))


def _largest(plans: Mapping[str, Plan]) -> tuple[Plan, Plan] | None:
    """The largest sub-plan that is worth it and occurs twice: without names, and as first met."""
    counts: Counter[Plan] = Counter()
    first: dict[Plan, Plan] = {}
    for plan in plans.values():
        # Names are local to a node, so the sub-plans without names are those of the plan without names.
        for node, key in zip(walk_plan(plan), walk_plan(_nameless(plan)), strict=True):
            if _is_worth(key):
                counts[key] += 1
                first.setdefault(key, node)
    twice = [key for key, count in counts.items() if count > 1]
    if not twice:
        return None
    best = max(twice, key=lambda key: (sum(1 for _ in walk_plan(key)), repr(key)))
    return best, first[best]


def _is_worth(plan: Plan) -> bool:
    stateful = (Join, Aggregate, Distinct, TopK, Window, Intersect, Except, Fixpoint)
    # What reads a recursive relation has no meaning outside its Fixpoint.
    return not free_names(plan) and any(isinstance(node, stateful) for node in walk_plan(plan))


@functools.lru_cache(maxsize=1024)  # of equal plans it is the same, and it is asked of each part of each plan
def _nameless(plan: Plan) -> Plan:
    """The plan with columns numbered instead of named; scans keep their names."""

    def bare(node: Expression) -> Expression:
        return replace(node, name="") if isinstance(node, (Column, OuterColumn)) and node.name else node

    def one(node: Plan) -> Plan:
        node = map_expressions(node, lambda e: transform(e, bare))
        if isinstance(node, (Project, Aggregate, Window)):
            return replace(node, names=tuple(map(str, range(len(node.names)))))
        return node

    return rewrite(plan, one)


def _replaced(plan: Plan, nameless: Plan, source: Scan) -> Plan:
    if nameless not in walk_plan(_nameless(plan)):
        return plan
    if _nameless(plan) != nameless:
        return map_inputs(plan, lambda child: _replaced(child, nameless, source))
    names = tuple(field.name for field in plan.schema)
    if names == tuple(field.name for field in source.schema):
        return source
    return Project(source, all_columns(source.schema), names)


def _in_order(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """Each plan after those it reads, otherwise as given."""
    done: dict[str, Plan] = {}

    def visit(name: str) -> Iterator[str]:
        if name in done or name not in plans:
            return
        for read in dict.fromkeys(scans_of(plans[name])):
            yield from visit(read)
        done[name] = plans[name]
        yield name

    for name in plans:
        list(visit(name))
    return done
