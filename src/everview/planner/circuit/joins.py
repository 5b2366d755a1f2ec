"""Joins by delta: what changed on one side meets what is kept of the other, found by the join's keys.

Inner: ΔL ⋈ R ∪ L ⋈ ΔR ∪ ΔL ⋈ ΔR, L and R as they were. Semi and anti: left rows that match a changed right
row are judged before and after, changed left rows after; for all others the right side is as it was.
Outer joins are the inner join and the anti joins with NULLs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.language.expressions import Expression, Literal, conjunction, substitute
from everview.language.plan import Filter, Join, JoinKind, Plan, UnionAll
from everview.planner.circuit.parts import Keeping, Kept, Lookup, Operator, changed_scan, found_scan
from everview.planner.circuit.weighted import (
    ZERO,
    columns,
    compare,
    consolidated,
    moved,
    negated,
    project,
    times,
    united,
)
from everview.planner.conditions import not_null
from everview.planner.facts import EquiPair, equi_keys

if TYPE_CHECKING:
    from everview.planner.circuit.build import Builder

__all__ = ["inner", "outer"]


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a join: its change, what is kept of it, and the keys of a change."""

    width: int
    change: Plan
    kept: Kept
    keys: Plan | None

    @property
    def found(self) -> Plan:
        """The kept rows that were found, without computed keys."""
        every = columns(found_scan(self.kept))
        return project(found_scan(self.kept), (*every[: self.width], every[-1]))


def inner(builder: Builder, name: str, plan: Join) -> Operator:
    """The pairs that appear and disappear."""
    left, right = _sides(builder, plan)
    change = _pairs(plan, left, right)
    # A side that never meets itself is looked up by the other's changes only.
    lookups = (Lookup(right.kept, left.keys), Lookup(left.kept, right.keys))
    return Operator(name, plan.schema, _title(plan), Keeping.DELTA, lookups, (), change)


def outer(builder: Builder, name: str, plan: Join) -> Operator:
    """Semi, anti and outer joins: rows whose having a partner changes, and the pairs."""
    left, right = _sides(builder, plan)
    lookups = [Lookup(right.kept, left.keys), Lookup(right.kept, right.keys), Lookup(left.kept, right.keys)]
    terms: list[Plan | None] = []
    if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        terms.append(_pairs(plan, left, right))
    if plan.kind is not JoinKind.RIGHT:
        kind = JoinKind.SEMI if plan.kind is JoinKind.SEMI else JoinKind.ANTI
        alone = _judged(Join(kind, plan.left, plan.right, plan.condition), left, right)
        nothing = tuple(Literal(None, field.type) for field in plan.right.schema)
        terms.append(alone if plan.kind in (JoinKind.SEMI, JoinKind.ANTI) else _padded(alone, after=nothing))
    if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
        lookups.append(Lookup(left.kept, left.keys))
        condition = _turned(plan.condition, left.width, right.width)
        alone = _judged(Join(JoinKind.ANTI, plan.right, plan.left, condition), right, left)
        terms.append(_padded(alone, before=tuple(Literal(None, field.type) for field in plan.left.schema)))
    return Operator(name, plan.schema, _title(plan), Keeping.DELTA, tuple(lookups), (), united(terms))


def _title(plan: Join) -> str:
    return f"{plan.kind.value.capitalize()} join"


def _sides(builder: Builder, plan: Join) -> tuple[_Side, _Side]:
    pairs = equi_keys(plan).pairs
    left = _side(builder, plan.left, tuple(pair.left for pair in pairs), pairs)
    right = _side(builder, plan.right, tuple(pair.right for pair in pairs), pairs)
    return left, right


def _side(builder: Builder, flat: Plan, keys: tuple[Expression, ...], pairs: tuple[EquiPair, ...]) -> _Side:
    width = len(flat.schema)
    kept = builder.keep(flat, keys)
    changed = changed_scan(kept)
    every = columns(changed)
    change = project(changed, (*every[:width], every[-1]))
    if not keys:
        return _Side(width, change, kept, None)
    places = [every[place] for place in kept.keys]
    # NULL meets nothing unless the join says so.
    wanted = conjunction(
        [not_null(key) for key, pair in zip(places, pairs, strict=True) if not pair.null_safe]
    )
    return _Side(width, change, kept, project(Filter(changed, wanted), places))


def _pairs(plan: Join, left: _Side, right: _Side) -> Plan:
    def meeting(one: Plan, other: Plan) -> Plan:
        joined = Join(JoinKind.INNER, one, other, moved(plan.condition, left.width, 1))
        every = columns(joined)
        own, weight, others = every[: left.width], every[left.width], every[left.width + 1 :]
        return project(joined, (*own, *others[:-1], times(weight, others[-1])))

    return UnionAll(
        (
            meeting(left.change, right.found),
            meeting(left.found, right.change),
            meeting(left.change, right.change),
        )
    )


def _judged(plan: Join, left: _Side, right: _Side) -> Plan:
    """The change of a semi or anti join; left rows keep their weights."""
    condition = moved(plan.condition, left.width, 1)
    after = Filter(
        consolidated(UnionAll((right.found, right.change))),
        _present(right.width, right.change),
    )
    touched = Join(JoinKind.SEMI, left.found, right.change, condition)
    return UnionAll(
        (
            Join(plan.kind, touched, after, condition),
            negated(Join(plan.kind, touched, right.found, condition)),
            Join(plan.kind, left.change, after, condition),
        )
    )


def _present(width: int, change: Plan) -> Expression:
    return compare(columns(change)[width], ">", ZERO)


def _padded(alone: Plan, *, before: tuple[Expression, ...] = (), after: tuple[Expression, ...] = ()) -> Plan:
    *own, weight = columns(alone)
    return project(alone, (*before, *own, *after, weight))


def _turned(condition: Expression, left: int, right: int) -> Expression:
    """The condition over the right row, then the left one."""
    return substitute(
        condition, lambda c: type(c)(c.index + right if c.index < left else c.index - left, c.type, c.name)
    )
