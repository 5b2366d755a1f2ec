"""Spread: a subquery for all outer rows at once.

spread(S) has the columns of S, then one column for each outer column that S reads. For every row d of
outer columns that occurs, its rows with these columns being d are exactly S(d), with S(d)'s own
multiplicities. There may be rows for further values of d; whoever joins on d does not see them.

Where conditions `inner = outer` give all the outer columns, they are taken from the inner side, and the
outer plan is not needed (`_bound`). Otherwise the domain, the distinct outer columns, is joined in at
the lowest place (Neumann, Kemper: Unnesting Arbitrary Queries). A column that was taken from an equality
is never NULL, so it may be joined by `=`; columns of a domain are joined by IS NOT DISTINCT FROM.

✗ A global aggregate over nothing is one row, a grouped one is none: without the left join from the
domain, `count(*)` of an empty group would be missing instead of 0 (`_one_group`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from everview.language.aggregates import AggregateCall, SortKey, WindowCall
from everview.language.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    conjunction,
    is_nullable,
    transform,
)
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Fixpoint,
    Intersect,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveScan,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
    expressions_of,
)
from everview.language.types import BIGINT, BOOLEAN
from everview.planner.conditions import (
    all_columns,
    column,
    conjuncts,
    equal,
    is_correlated,
    not_null,
    outer_reads,
    same,
)
from everview.planner.unnest.lift import Lifted, close, lift, surface

__all__ = ["Spread", "count_or_zero", "join_on", "spread"]


@dataclass(frozen=True, slots=True)
class Spread:
    """A plan whose first `width` columns are the subquery's; `at` says where outer columns stand.

    `strict` are the outer columns that are never NULL here.
    """

    plan: Plan
    width: int
    at: dict[int, int]
    strict: frozenset[int]

    def columns(self, *, shifted: int = 0) -> dict[int, Column]:
        """Where an expression over this plan finds the outer columns."""
        schema = self.plan.schema
        return {
            outer: Column(place + shifted, schema[place].type, schema[place].name)
            for outer, place in self.at.items()
        }


def spread(plan: Plan, outer: Plan, need: frozenset[int] = frozenset()) -> Spread:
    """The subquery's plan for all rows of `outer`, with at least the outer columns in `need`."""
    if not is_correlated(plan):
        found = Spread(surface(plan), len(plan.schema), {}, frozenset())
    else:
        found = _bound(plan) or _by_node(plan, outer, need)
    return _with_domain(found, outer, need)


def count_or_zero(call: AggregateCall, value: Expression) -> Expression:
    """An aggregate's column after an outer join: what it is over no rows, where there was no group."""
    if call.function == "count":
        return Call("coalesce", (value, Literal(0, BIGINT)), BIGINT)
    return value


def join_on(left: dict[int, Column], right: dict[int, Column], strict: Iterable[int]) -> Expression:
    """That both sides are for the same outer columns, as far as both have them."""
    return conjunction(
        tuple(
            equal(left[outer], right[outer]) if outer in strict else same(left[outer], right[outer])
            for outer in sorted(left.keys() & right.keys())
        )
    )


def _domain(outer: Plan, need: Iterable[int]) -> Spread:
    """The distinct values of these outer columns."""
    wanted = sorted(need)
    columns = tuple(column(outer.schema, index) for index in wanted)
    plan = Distinct(Project(outer, columns, tuple(found.name for found in columns)))
    strict = frozenset(index for index in wanted if not outer.schema[index].nullable)
    return Spread(plan, 0, {index: place for place, index in enumerate(wanted)}, strict)


def _with_domain(found: Spread, outer: Plan, need: frozenset[int]) -> Spread:
    """Also with the outer columns in `need`: joined with their domain if one is missing."""
    if need <= found.at.keys():
        return found
    domain = _domain(outer, need | found.at.keys())
    width = len(found.plan.schema)
    strict = found.strict | domain.strict
    places = domain.columns(shifted=width)
    plan = Join(JoinKind.INNER, found.plan, domain.plan, join_on(found.columns(), places, strict))
    return _laid_out(Spread(plan, found.width, {o: c.index for o, c in places.items()}, strict))


def _laid_out(found: Spread, first: tuple[int, ...] | None = None) -> Spread:
    """The same with the subquery's columns (`first` says where they stand) first, then the outer ones."""
    outer = sorted(found.at)
    places = (*(range(found.width) if first is None else first), *(found.at[o] for o in outer))
    at = {o: found.width + index for index, o in enumerate(outer)}
    if places == tuple(range(len(found.plan.schema))):
        return replace(found, at=at)
    columns = tuple(column(found.plan.schema, place) for place in places)
    plan = Project(found.plan, columns, tuple(one.name for one in columns))
    return replace(found, plan=plan, at=at)


def _bound(plan: Plan) -> Spread | None:
    """The subquery without a domain: every outer column it reads equals something inside it."""
    lifted = lift(plan)
    if lifted is None:
        return None
    bindings: dict[int, Expression] = {}
    rest: list[Expression] = []
    for condition in lifted.conditions:
        found = _binding(condition)
        if found is not None and found[0] not in bindings:
            bindings[found[0]] = found[1]
        else:
            rest.append(condition)
    reads = frozenset(c for part in (*lifted.outputs, *rest) for c in outer_reads(part))
    if not reads <= bindings.keys():
        return None
    return _from_inside(lifted, bindings, rest)


def _from_inside(lifted: Lifted, bindings: dict[int, Expression], rest: list[Expression]) -> Spread:
    def inside(expression: Expression) -> Expression:
        def one(node: Expression) -> Expression:
            match node:
                case OuterColumn(depth=1, index=index):
                    return bindings[index]
                case _:
                    return node

        return close(transform(expression, one), {})

    plan = surface(lifted.plan)
    values = {outer: close(value, {}) for outer, value in bindings.items()}
    known = [not_null(value) for value in values.values() if is_nullable(value, plan.schema)]
    kept = conjunction((*known, *map(inside, rest)))
    if kept != TRUE:
        plan = Filter(plan, kept)
    wanted = sorted(values)
    outputs = tuple(map(inside, lifted.outputs)) + tuple(values[outer] for outer in wanted)
    names = tuple(getattr(output, "name", "") or f"column{i}" for i, output in enumerate(outputs, start=1))
    width = len(lifted.outputs)
    at = {outer: width + index for index, outer in enumerate(wanted)}
    return Spread(Project(plan, outputs, names), width, at, frozenset(wanted))


def _binding(condition: Expression) -> tuple[int, Expression] | None:
    """The outer column, and the inner expression that a condition says it equals."""
    match condition:
        case Call("=", (OuterColumn(depth=1, index=index), value)) if not outer_reads(value):
            return index, value
        case Call("=", (value, OuterColumn(depth=1, index=index))) if not outer_reads(value):
            return index, value
        case _:
            return None


def _by_node(plan: Plan, outer: Plan, need: frozenset[int]) -> Spread:
    own = frozenset(read for expression in expressions_of(plan) for read in outer_reads(expression))
    match plan:
        case Scan() | RecursiveScan() | Fixpoint():
            raise AssertionError(f"a {type(plan).__name__} reads no outer row")
        case Values():
            return _values(plan, outer, own)
        case Filter(child, predicate):
            return _filter(child, predicate, outer, own)
        case Project(child, expressions, names):
            below = spread(child, outer, own)
            return _projected(below, tuple(close(e, below.columns()) for e in expressions), names)
        case Join():
            return _join(plan, outer, own)
        case UnionAll(inputs):
            sides = _aligned(inputs, outer, need)
            strict = frozenset.intersection(*(side.strict for side in sides))
            return replace(sides[0], plan=UnionAll(tuple(side.plan for side in sides)), strict=strict)
        case Intersect(left, right) | Except(left, right):
            one, other = _aligned((left, right), outer, need)
            both = replace(plan, left=one.plan, right=other.plan)
            strict = one.strict if isinstance(plan, Except) else one.strict | other.strict
            return replace(one, plan=both, strict=strict)
        case Distinct(child):
            below = _laid_out(spread(child, outer))
            return replace(below, plan=Distinct(below.plan))
        case Aggregate():
            return _aggregate(plan, outer, own)
        case TopK():
            return _top(plan, outer, own)
        case Window():
            return _window(plan, outer, own)
        case _:
            assert_never(plan)


def _filter(child: Plan, predicate: Expression, outer: Plan, own: frozenset[int]) -> Spread:
    """A filter; outer columns that it says are equal to something inside need no domain."""
    found = (_binding(part) for part in conjuncts(predicate))
    bindings = dict(binding for binding in found if binding is not None)
    below = spread(child, outer, own - bindings.keys())
    fresh = sorted(bindings.keys() - below.at.keys())
    if fresh:
        columns = all_columns(below.plan.schema)
        names = tuple(field.name for field in below.plan.schema)
        values = tuple(close(bindings[read], {}) for read in fresh)
        plan = Project(below.plan, columns + values, names + tuple(outer.schema[read].name for read in fresh))
        at = {**below.at, **{read: len(columns) + index for index, read in enumerate(fresh)}}
        below = Spread(plan, below.width, at, below.strict | frozenset(fresh))
    places = below.columns()
    taken = {(read, bindings[read]) for read in fresh}
    parts = [
        not_null(places[binding[0]])
        if (binding := _binding(part)) in taken and binding
        else close(part, places)
        for part in conjuncts(predicate)
    ]
    return replace(below, plan=Filter(below.plan, conjunction(parts)))


def _projected(below: Spread, expressions: tuple[Expression, ...], names: tuple[str, ...]) -> Spread:
    outer = sorted(below.at)
    columns = tuple(column(below.plan.schema, below.at[o]) for o in outer)
    plan = Project(below.plan, expressions + columns, names + tuple(c.name for c in columns))
    at = {o: len(expressions) + index for index, o in enumerate(outer)}
    return Spread(plan, len(expressions), at, below.strict)


def _values(plan: Values, outer: Plan, own: frozenset[int]) -> Spread:
    domain = _domain(outer, own)
    names = tuple(field.name for field in plan.schema)
    rows = [
        _projected(domain, tuple(close(cell, domain.columns()) for cell in row), names) for row in plan.rows
    ]
    if len(rows) == 1:
        return rows[0]
    return replace(rows[0], plan=UnionAll(tuple(row.plan for row in rows)))


def _aligned(inputs: tuple[Plan, ...], outer: Plan, need: frozenset[int]) -> list[Spread]:
    """All inputs with the same outer columns at the same places."""
    sides = [spread(child, outer, need) for child in inputs]
    common = need.union(*(side.at for side in sides))
    return [_laid_out(_with_domain(side, outer, common)) for side in sides]


def _join(plan: Join, outer: Plan, own: frozenset[int]) -> Spread:
    """A join, of rows for the same outer columns.

    A side whose rows are kept without a partner must be there for every outer row that the other side or
    the condition speaks about, else those rows would be missing.
    """
    match plan.kind:
        case JoinKind.INNER:
            left = spread(plan.left, outer)
            right = spread(plan.right, outer, own - left.at.keys())
        case JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI:
            right = spread(plan.right, outer)
            left = spread(plan.left, outer, own | right.at.keys())
        case JoinKind.RIGHT:
            left = spread(plan.left, outer)
            right = spread(plan.right, outer, own | left.at.keys())
        case JoinKind.FULL:
            left, right = _aligned((plan.left, plan.right), outer, own)
        case _:
            assert_never(plan.kind)
    width = len(left.plan.schema)
    one, other = left.columns(), right.columns(shifted=width)
    places = {**other, **one} if plan.kind is not JoinKind.RIGHT else {**one, **other}

    def moved(index: Column) -> Expression:
        at = index.index if index.index < left.width else index.index - left.width + width
        return replace(index, index=at)

    condition = close(transform(plan.condition, lambda e: moved(e) if isinstance(e, Column) else e), places)
    strict = left.strict | right.strict
    joined = Join(plan.kind, left.plan, right.plan, conjunction((condition, join_on(one, other, strict))))
    if plan.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return replace(left, plan=joined)
    columns = (*range(left.width), *range(width, width + right.width))
    if plan.kind is JoinKind.FULL:
        return _full(joined, columns, (one, other), left.strict & right.strict)
    kept = {JoinKind.LEFT: left.strict, JoinKind.RIGHT: right.strict}.get(plan.kind, strict)
    at = {o: c.index for o, c in places.items()}
    return _laid_out(Spread(joined, len(columns), at, kept), columns)


def _full(
    joined: Plan, columns: tuple[int, ...], sides: tuple[dict[int, Column], dict[int, Column]],
    strict: frozenset[int],
) -> Spread:  # fmt: skip
    """The outer columns of a full join: from whichever side is there."""
    one, other = sides
    outer = sorted(one)
    either = tuple(Call("coalesce", (one[o], other[o]), one[o].type) for o in outer)
    shown = tuple(column(joined.schema, place) for place in columns)
    names = (*(c.name for c in shown), *(one[o].name for o in outer))
    at = {o: len(columns) + index for index, o in enumerate(outer)}
    return Spread(Project(joined, shown + either, names), len(columns), at, strict)


def _aggregate(plan: Aggregate, outer: Plan, own: frozenset[int]) -> Spread:
    below = spread(plan.input, outer, own)
    places = below.columns()
    wanted = sorted(places)
    calls = tuple(call.map_expressions(lambda e: close(e, places)) for call in plan.aggregates)
    keys = tuple(close(key, places) for key in plan.keys) + tuple(places[o] for o in wanted)
    names = plan.names[: len(plan.keys)] + tuple(places[o].name for o in wanted)
    grouped = Aggregate(below.plan, keys, calls, names + plan.names[len(plan.keys) :])
    if not plan.keys:
        return _one_group(grouped, wanted, below.strict, outer)
    at = {o: len(plan.keys) + index for index, o in enumerate(wanted)}
    first = (*range(len(plan.keys)), *range(len(keys), len(keys) + len(calls)))
    return _laid_out(Spread(grouped, len(first), at, below.strict), first)


def _one_group(grouped: Aggregate, wanted: list[int], strict: frozenset[int], outer: Plan) -> Spread:
    """A global aggregate: one row for every outer row, also where nothing was to be aggregated."""
    domain = _domain(outer, wanted)
    width = len(wanted)
    groups = {o: replace(column(grouped.schema, i), index=width + i) for i, o in enumerate(wanted)}
    condition = join_on(domain.columns(), groups, strict | domain.strict)
    joined = Join(JoinKind.LEFT, domain.plan, grouped, condition)
    values = tuple(
        count_or_zero(call, column(joined.schema, 2 * width + index))
        for index, call in enumerate(grouped.aggregates)
    )
    return _projected(replace(domain, plan=joined), values, grouped.names[width:])


def _window(plan: Window, outer: Plan, own: frozenset[int]) -> Spread:
    below = spread(plan.input, outer, own)
    places = below.columns()
    each = tuple(places[o] for o in sorted(places))
    calls = tuple(call.map_expressions(lambda e: close(e, places)) for call in plan.calls)
    calls = tuple(replace(call, partition=(*call.partition, *each)) for call in calls)
    width = len(below.plan.schema)
    first = (*range(below.width), *range(width, width + len(calls)))
    node = Window(below.plan, calls, plan.names)
    return _laid_out(replace(below, plan=node, width=len(first)), first)


def _top(plan: TopK, outer: Plan, own: frozenset[int]) -> Spread:
    """ORDER BY … LIMIT for each outer row: by the number of the row among those for it."""
    below = spread(plan.input, outer, own)
    places = below.columns()
    each = tuple(places[o] for o in sorted(places))

    def key(one: SortKey) -> SortKey:
        return one.map_expressions(lambda e: close(e, places))

    call = WindowCall(
        "row_number", (), each, tuple(map(key, plan.order)), tuple(map(key, plan.ties)), None, BIGINT
    )
    numbered = Window(below.plan, (call,), ("row_number",))
    number: Expression = column(numbered.schema, len(numbered.schema) - 1)
    kept = Filter(numbered, _chosen(number, plan))
    return _laid_out(replace(below, plan=kept))


def _chosen(number: Expression, plan: TopK) -> Expression:
    """Whether the row of this number is among those that LIMIT and OFFSET choose."""
    limit, offset = plan.limit, plan.offset
    first = offset.value if isinstance(offset, Literal) else None if offset is not None else 0
    if first is not None and isinstance(limit, Literal) and limit.value == 1:
        return equal(number, Literal(first + 1, BIGINT))  # so that facts know it is one row
    conditions: list[Expression] = []
    if offset is not None:
        conditions.append(Call(">", (number, offset), BOOLEAN))
        number = Call("-", (number, offset), BIGINT)
    if limit is not None:
        within: Expression = Call("<=", (number, limit), BOOLEAN)
        conditions.append(Or((IsNull(limit), within)) if isinstance(limit, Parameter) else within)
    return conjunction(conditions)
