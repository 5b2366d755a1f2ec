"""Plan → delta plan: how the rows of a plan change when the tables it reads change.

A delta plan is an ordinary plan with one more column, the weight: +1 for a row that appeared, −1 for one
that disappeared. It reads three states of a table, as three names: `old`, `new` and `delta`, the last one
with a weight of its own. So any engine that runs plans runs delta plans, and `explain` prints them.

- Filter, Project, UnionAll: the same over the delta.
- Inner join: Δ(L ⋈ R) = ΔL ⋈ R' ∪ L ⋈ ΔR, the left state before, the right one after; self-joins too.
- Semi and anti join: left rows that match a changed right row are compared before and after; for all
  others the right side is as it was. Outer joins are the inner join and the anti joins, with NULLs.
- Aggregate, Distinct, Intersect, Except, Window: the groups that the delta touches, after minus before.
- What has no groups (TopK, an aggregate without keys): all of it, after minus before.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import assert_never

from everview.language.expressions import (
    Column,
    Expression,
    IsDistinct,
    Literal,
    Not,
    conjunction,
    substitute,
)
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
    map_inputs,
    rewrite,
)
from everview.language.types import BIGINT, Field

__all__ = ["State", "delta_plan", "state_name", "state_of", "strategies"]

WEIGHT = Field("weight", BIGINT, nullable=False)


class State(enum.Enum):
    """Which rows of a table a Scan of a delta plan reads."""

    OLD = "old"
    NEW = "new"
    DELTA = "delta"


def state_name(name: str, state: State) -> str:
    """The name by which a delta plan reads a state of a table."""
    return f"{name}@{state.value}"


def state_of(name: str) -> tuple[str, State]:
    """The table and the state that `state_name` named."""
    table, _, state = name.rpartition("@")
    return table, State(state)


def delta_plan(plan: Plan, touched: Collection[str]) -> Plan | None:
    """The plan of the change, its weight last; None when nothing that it reads was touched.

    Weights are not summed up: a row may occur several times, and +1 may meet −1.
    """
    return _Delta(touched).of(plan)


def strategies(plan: Plan) -> Iterator[tuple[Plan, str]]:
    """Each node, parents first, and how its change is found."""
    match plan:
        case Aggregate(keys=()) | TopK():
            how = "in full, after minus before"
        case Window() if not _shared_partition(plan):
            how = "in full, after minus before"
        case Aggregate() | Distinct() | Intersect() | Except() | Window():
            how = "by touched group"
        case Scan() | Values() | Filter() | Project() | Join() | UnionAll():
            how = "by delta"
        case _:
            assert_never(plan)
    yield plan, how
    for child in plan.inputs:
        yield from strategies(child)


def _columns(plan: Plan, *, start: int = 0) -> tuple[Column, ...]:
    return tuple(Column(start + i, field.type, field.name) for i, field in enumerate(plan.schema))


def _names(plan: Plan) -> tuple[str, ...]:
    return tuple(field.name for field in plan.schema)


def _with_weight(plan: Plan, weight: int) -> Plan:
    """The rows of a plan, each with this weight."""
    return Project(plan, (*_columns(plan), Literal(weight, BIGINT)), (*_names(plan), WEIGHT.name))


def _change(after: Plan, before: Plan) -> Plan:
    return UnionAll((_with_weight(after, 1), _with_weight(before, -1)))


def _without_weight(delta: Plan) -> Plan:
    return Project(delta, _columns(delta)[:-1], _names(delta)[:-1])


def _same(left: tuple[Expression, ...], right: tuple[Expression, ...]) -> Expression:
    """Equal as groups are: NULL is NULL."""
    return conjunction([Not(IsDistinct(a, b)) for a, b in zip(left, right, strict=True)])


class _Delta:
    def __init__(self, touched: Collection[str]) -> None:
        self._touched = touched

    def _at(self, plan: Plan, state: State) -> Plan:
        """The plan over one state of its tables; a table that was not touched has only one."""

        def one(node: Plan) -> Plan:
            if isinstance(node, Scan):
                shown = state if node.name in self._touched else State.NEW
                return Scan(state_name(node.name, shown), node.schema)
            return node

        return rewrite(plan, one)

    def of(self, plan: Plan) -> Plan | None:
        match plan:
            case Scan(name, schema):
                if name not in self._touched:
                    return None
                return Scan(state_name(name, State.DELTA), (*schema, WEIGHT))
            case Values():
                return None
            case Filter(child, predicate):
                return self._over(child, lambda delta: Filter(delta, predicate))
            case Project(child, expressions, names):
                return self._over(
                    child,
                    lambda delta: Project(delta, (*expressions, _columns(delta)[-1]), (*names, WEIGHT.name)),
                )
            case UnionAll(inputs):
                return _united([self.of(child) for child in inputs])
            case Join():
                return self._join(plan)
            case Distinct(child):
                return self._grouped(plan, [(child, _columns(child))])
            case Intersect(left, right) | Except(left, right):
                return self._grouped(plan, [(left, _columns(left)), (right, _columns(right))])
            case Aggregate(child, keys):
                return self._grouped(plan, [(child, keys)])
            case Window(child):
                return self._grouped(plan, [(child, _shared_partition(plan))])
            case TopK(child):
                return self._grouped(plan, [(child, ())])
            case _:
                assert_never(plan)

    def _over(self, child: Plan, make: Callable[[Plan], Plan]) -> Plan | None:
        delta = self.of(child)
        return None if delta is None else make(delta)

    def _grouped(self, plan: Plan, inputs: list[tuple[Plan, tuple[Expression, ...]]]) -> Plan | None:
        """After minus before, over the rows whose groups some input's delta touches."""
        deltas = [(self.of(child), keys) for child, keys in inputs]
        touched = [
            Project(delta, keys, tuple(f"key{i}" for i in range(len(keys))))
            for delta, keys in deltas
            if delta is not None
        ]
        if not touched:
            return None
        if not inputs[0][1]:
            return _change(self._at(plan, State.NEW), self._at(plan, State.OLD))
        groups = Distinct(touched[0] if len(touched) == 1 else UnionAll(tuple(touched)))

        def at(state: State) -> Plan:
            keyed = iter(inputs)

            def narrowed(child: Plan) -> Plan:
                keys = next(keyed)[1]
                condition = _same(keys, _columns(groups, start=len(child.schema)))
                return Join(JoinKind.SEMI, self._at(child, state), groups, condition)

            return map_inputs(plan, narrowed)

        return _change(at(State.NEW), at(State.OLD))

    def _join(self, plan: Join) -> Plan | None:
        match plan.kind:
            case JoinKind.INNER:
                return self._inner(plan)
            case JoinKind.SEMI | JoinKind.ANTI:
                return self._filtered(plan)
            case JoinKind.LEFT:
                return _united([self._inner(plan), self._unmatched(plan)])
            case JoinKind.RIGHT:
                return _united([self._inner(plan), self._unmatched_right(plan)])
            case JoinKind.FULL:
                return _united([self._inner(plan), self._unmatched(plan), self._unmatched_right(plan)])
            case _:
                assert_never(plan.kind)

    def _inner(self, plan: Join) -> Plan | None:
        left, right = self.of(plan.left), self.of(plan.right)
        width = len(plan.left.schema)
        terms: list[Plan | None] = []
        if left is not None:
            # The weight stands between the columns of both sides.
            condition = _moved(plan.condition, width, 1)
            joined = Join(JoinKind.INNER, left, self._at(plan.right, State.NEW), condition)
            columns = _columns(joined)
            terms.append(_ordered(joined, (*columns[:width], *columns[width + 1 :], columns[width])))
        if right is not None:
            joined = Join(JoinKind.INNER, self._at(plan.left, State.OLD), right, plan.condition)
            terms.append(joined)
        return _united(terms)

    def _filtered(self, plan: Join) -> Plan | None:
        left, right = self.of(plan.left), self.of(plan.right)
        width = len(plan.left.schema)
        if right is None:
            return (
                None
                if left is None
                else _weighted_filter(plan.kind, left, self._at(plan.right, State.NEW), plan)
            )
        changed = _without_weight(right)

        def at(state: State) -> Plan:
            matched = Join(JoinKind.SEMI, self._at(plan.left, state), changed, plan.condition)
            return Join(plan.kind, matched, self._at(plan.right, state), plan.condition)

        terms: list[Plan | None] = [_change(at(State.NEW), at(State.OLD))]
        if left is not None:
            condition = _moved(plan.condition, width, 1)
            apart = Join(JoinKind.ANTI, left, changed, condition)
            terms.append(_weighted_filter(plan.kind, apart, self._at(plan.right, State.NEW), plan))
        return _united(terms)

    def _unmatched(self, plan: Join) -> Plan | None:
        """Left rows without a partner, NULLs beside them."""
        anti = self._filtered(Join(JoinKind.ANTI, plan.left, plan.right, plan.condition))
        if anti is None:
            return None
        columns = _columns(anti)
        nothing = tuple(Literal(None, field.type) for field in plan.right.schema)
        return _ordered(anti, (*columns[:-1], *nothing, columns[-1]), named=plan)

    def _unmatched_right(self, plan: Join) -> Plan | None:
        """Right rows without a partner, NULLs before them."""
        left, right = len(plan.left.schema), len(plan.right.schema)
        condition = substitute(
            plan.condition,
            lambda c: replace(c, index=c.index + right if c.index < left else c.index - left),
        )
        anti = self._filtered(Join(JoinKind.ANTI, plan.right, plan.left, condition))
        if anti is None:
            return None
        nothing = tuple(Literal(None, field.type) for field in plan.left.schema)
        return _ordered(anti, (*nothing, *_columns(anti)), named=plan)


def _weighted_filter(kind: JoinKind, delta: Plan, right: Plan, plan: Join) -> Plan:
    return Join(kind, delta, right, _moved(plan.condition, len(plan.left.schema), 1))


def _moved(condition: Expression, width: int, by: int) -> Expression:
    """The condition over a left row that has `by` more columns at its end."""
    return substitute(condition, lambda c: c if c.index < width else replace(c, index=c.index + by))


def _ordered(plan: Plan, expressions: tuple[Expression, ...], *, named: Plan | None = None) -> Plan:
    names = (*_names(named), WEIGHT.name) if named else tuple(f"x{i}" for i in range(len(expressions)))
    return Project(plan, expressions, names)


def _united(terms: list[Plan | None]) -> Plan | None:
    present = tuple(term for term in terms if term is not None)
    if len(present) < 2:
        return present[0] if present else None
    return UnionAll(present)


def _shared_partition(plan: Window) -> tuple[Expression, ...]:
    """The expressions that every call partitions by: rows that differ in them never meet."""
    first, *others = (call.partition for call in plan.calls)
    return tuple(part for part in first if all(part in other for other in others))
