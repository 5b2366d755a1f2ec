"""Decorrelate: subqueries become joins.

filter(EXISTS S, R) = R semi join S; filter(NOT EXISTS S, R) = R anti join S; filter(x IN S, R) = R semi
join S on x = y; filter(x NOT IN S, R) = R anti join S on x = y, anti join S on y IS NULL, anti join S on x IS
NULL, for a NULL on either side is as good as a match there. Each of the three looks rows up by a key, or asks
only whether there are any; together in one condition they would compare every pair. A subquery anywhere else
becomes a column that is attached to its rows (`unnest/attach.py`), and the expression reads that column. Rows
keep their multiplicities throughout.

Subqueries are taken from the inside out, so that one which is turned into a join holds none itself;
what it reads of rows further out it then reads one level less deep.

Afterwards no expression holds a plan: `check_decorrelated` says so. Refused: a subquery in the ON of a
FULL JOIN that reads columns of both sides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from everview.errors import ProgramError
from everview.language.expressions import (
    FALSE,
    TRUE,
    Column,
    Exists,
    Expression,
    InSubquery,
    IsNull,
    Not,
    OuterColumn,
    ScalarSubquery,
    columns_of,
    conjunction,
    is_nullable,
    map_children,
    shift,
    substitute,
    transform,
    walk,
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
    map_expressions,
    walk_plan,
)
from everview.planner.conditions import all_columns, column, conjuncts, equal, has_subquery, outer_reads, same
from everview.planner.facts import NOTHING_KNOWN, Facts
from everview.planner.unnest.attach import Attached
from everview.planner.unnest.lift import close, lift, same_existence, surface
from everview.planner.unnest.spread import join_on, spread
from everview.planner.walking import over

__all__ = ["check_decorrelated", "decorrelate"]

_ONE_ROW = Values((), ((),))


def decorrelate(plan: Plan, *, facts: Facts = NOTHING_KNOWN) -> Plan:
    """The plan with every subquery turned into joins; facts save work where a key is known."""

    def inside(e: Expression) -> Expression:
        match e:
            case Exists(inner) | ScalarSubquery(inner) | InSubquery(_, inner):
                return replace(e, plan=decorrelate(inner, facts=facts))
            case _:
                return e

    node = over(plan, lambda child: decorrelate(child, facts=facts))
    if not any(map(has_subquery, expressions_of(node))):
        return node
    node = map_expressions(node, lambda e: transform(e, inside))
    match node:
        case Scan() | RecursiveScan() | UnionAll() | Distinct() | Intersect() | Except() | Fixpoint():
            return node
        case Filter(child, predicate):
            return _filter(child, predicate, facts)
        case Join(JoinKind.INNER, left, right, condition):
            plain = [part for part in conjuncts(condition) if not has_subquery(part)]
            rest = [part for part in conjuncts(condition) if has_subquery(part)]
            joined = Join(JoinKind.INNER, left, right, conjunction(plain))
            return _filter(joined, conjunction(rest), facts)
        case Join():
            return _outer_join(node, facts)
        case Values(schema, rows):
            names = tuple(field.name for field in schema)
            each = tuple(decorrelate(Project(_ONE_ROW, row, names), facts=facts) for row in rows)
            return each[0] if len(each) == 1 else UnionAll(each)
        case Project() | Aggregate() | TopK() | Window():
            return _attached(node, facts)
        case _:
            assert_never(node)


def check_decorrelated(plan: Plan) -> None:
    """Fail if an expression still holds a subquery or reads a row outside."""
    kinds = (Exists, InSubquery, ScalarSubquery, OuterColumn)
    left = [
        f"{type(part).__name__} in {type(node).__name__}"
        for node in walk_plan(plan)
        for expression in expressions_of(node)
        for part in walk(expression)
        if isinstance(part, kinds)
    ]
    if left:
        raise AssertionError(f"not decorrelated: {', '.join(left)}")


def _narrowed(plan: Plan, like: Plan) -> Plan:
    """The first columns of a plan: those that another one has."""
    columns = all_columns(like.schema)
    if len(columns) == len(plan.schema):
        return plan
    return Project(plan, columns, tuple(found.name for found in columns))


def _attached(node: Project | Aggregate | TopK | Window, facts: Facts) -> Plan:
    """A node over rows that have the values of its subqueries as columns."""
    rows = Attached(node.input, facts)
    values = {expression: rows.value(expression) for expression in expressions_of(node)}
    # The expressions are over the wider rows, so they can only be put in together with these.
    wider = map_expressions(_over(node, rows.plan), values.__getitem__)
    match wider:
        case TopK():
            return _narrowed(wider, node)
        case Window(calls=calls):
            new = len(rows.plan.schema)
            places = (*range(len(node.input.schema)), *range(new, new + len(calls)))
            columns = tuple(column(wider.schema, place) for place in places)
            return Project(wider, columns, tuple(found.name for found in columns))
        case _:
            return wider


def _over(node: Project | Aggregate | TopK | Window, rows: Plan) -> Plan:
    return replace(node, input=rows)


def _filter(rows: Plan, predicate: Expression, facts: Facts) -> Plan:
    parts = conjuncts(predicate)
    plain = [part for part in parts if not has_subquery(part)]
    plan = Filter(rows, conjunction(plain)) if plain else rows
    rest: list[Expression] = []
    for part in parts:
        if has_subquery(part):
            found = _semi_join(plan, part)
            if found is None:
                rest.append(part)
            else:
                plan = found
    if not rest:
        return plan
    attached = Attached(plan, facts)
    condition = conjunction([attached.value(part) for part in rest])
    return _narrowed(Filter(attached.plan, condition), rows)


def _semi_join(rows: Plan, part: Expression) -> Plan | None:
    """The rows for which a conjunct that is a subquery or its negation is true; None if it is neither."""
    match part:
        case Exists(plan):
            return _exists(rows, plan, JoinKind.SEMI)
        case Not(Exists(plan)):
            return _exists(rows, plan, JoinKind.ANTI)
        case InSubquery(operand, plan) if not has_subquery(operand):
            return _in(rows, operand, plan, JoinKind.SEMI)
        case Not(InSubquery(operand, plan)) if not has_subquery(operand):
            return _in(rows, operand, plan, JoinKind.ANTI)
        case _:
            return None


def _exists(rows: Plan, plan: Plan, kind: JoinKind) -> Plan:
    found = same_existence(plan)
    if found is None:
        return rows if kind is JoinKind.SEMI else Filter(rows, FALSE)
    lifted = lift(found, existence=True)
    if lifted is not None:
        return Join(kind, rows, surface(lifted.plan), _closed(rows, lifted.conditions))
    wide = spread(found, rows)
    left = {outer: column(rows.schema, outer) for outer in wide.at}
    right = wide.columns(shifted=len(rows.schema))
    return Join(kind, rows, wide.plan, join_on(left, right, wide.strict))


def _closed(rows: Plan, conditions: tuple[Expression, ...]) -> Expression:
    """Conditions over a lifted plan and the outer row, as a condition of their join."""
    moved = [shift(condition, len(rows.schema)) for condition in conditions]
    reads = {read for condition in moved for read in outer_reads(condition)}
    at = {read: column(rows.schema, read) for read in reads}
    return conjunction([close(condition, at) for condition in moved])


def _in(rows: Plan, operand: Expression, plan: Plan, kind: JoinKind) -> Plan:
    lifted = lift(plan, existence=True)
    if lifted is None:
        attached = Attached(rows, NOTHING_KNOWN)
        subject = attached.as_column(operand)
        outer, item = OuterColumn(1, subject.index, subject.type), column(plan.schema, 0)
        found = attached.plan
        nullable = is_nullable(subject, found.schema), is_nullable(item, plan.schema)
        for match_ in _matches(outer, item, kind, nullable):
            found = _exists(found, Filter(plan, match_), kind)
        return _narrowed(found, rows)
    item_there = _closed(rows, (lifted.outputs[0],))
    inside = surface(lifted.plan)
    condition = _closed(rows, lifted.conditions)
    nullable = is_nullable(operand, rows.schema), is_nullable(item_there, rows.schema + inside.schema)
    found = rows
    for match_ in _matches(operand, item_there, kind, nullable):
        found = Join(kind, found, inside, conjunction((condition, match_)))
    return found


def _matches(
    operand: Expression, item: Expression, kind: JoinKind, nullable: tuple[bool, bool]
) -> list[Expression]:
    """What makes `x IN S` true of a row of S; or for NOT IN, what keeps it from being true."""
    found = [equal(operand, item)]
    if kind is JoinKind.ANTI:
        found += [IsNull(one) for one, may in zip((item, operand), reversed(nullable), strict=True) if may]
    return found


_LEFT_EXTRA, _RIGHT_EXTRA = 1_000_000, 2_000_000
"""Where the attached columns of either side are counted from while the sides still grow."""


def _outer_join(node: Join, facts: Facts) -> Plan:
    """A join that is not inner: subqueries that read one side only are attached to that side.

    Those that read both sides are left for `_two_sided`.
    """
    width, right_width = len(node.left.schema), len(node.right.schema)
    left, right = Attached(node.left, facts), Attached(node.right, facts)

    def settle(e: Expression) -> Expression:
        if not isinstance(e, (Exists, InSubquery, ScalarSubquery)):
            return map_children(e, settle)
        reads = columns_of(e)
        if all(read < width for read in reads):
            return substitute(left.value(e), lambda c: c if c.index < width else _moved(c, _LEFT_EXTRA))
        if all(read >= width for read in reads):
            value = right.value(shift(e, -width))
            return substitute(value, lambda c: _moved(c, width if c.index < right_width else _RIGHT_EXTRA))
        return e

    condition = settle(node.condition)
    new_width = len(left.plan.schema)

    def place(c: Column) -> Column:
        if c.index >= _RIGHT_EXTRA:
            return _moved(c, new_width - _RIGHT_EXTRA)
        if c.index >= _LEFT_EXTRA:
            return _moved(c, -_LEFT_EXTRA)
        return c if c.index < width else _moved(c, new_width - width)

    condition = substitute(condition, place)
    if not has_subquery(condition):
        joined: Plan = Join(node.kind, left.plan, right.plan, condition)
    elif node.kind is JoinKind.FULL:
        raise ProgramError(
            "a subquery in the ON of a FULL JOIN reads columns of both sides",
            hint="write the FULL JOIN as a LEFT JOIN and the unmatched rows of the right, with UNION ALL",
        )
    elif node.kind is JoinKind.RIGHT:
        joined = _mirrored(Join(JoinKind.RIGHT, left.plan, right.plan, condition), facts)
    else:
        joined = _two_sided(Join(node.kind, left.plan, right.plan, condition), facts)
    places = [*range(width)]
    if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        places += range(new_width, new_width + right_width)
    columns = tuple(column(joined.schema, index) for index in places)
    return Project(joined, columns, tuple(found.name for found in columns))


def _moved(found: Column, by: int) -> Column:
    return replace(found, index=found.index + by)


def _mirrored(node: Join, facts: Facts) -> Plan:
    """A right join as a left join of the sides exchanged, its columns put back."""
    left, right = len(node.left.schema), len(node.right.schema)
    condition = substitute(node.condition, lambda c: _moved(c, right if c.index < left else -left))
    plan = _two_sided(Join(JoinKind.LEFT, node.right, node.left, condition), facts)
    columns = tuple(column(plan.schema, index) for index in (*range(right, right + left), *range(right)))
    return Project(plan, columns, tuple(found.name for found in columns))


def _two_sided(node: Join, facts: Facts) -> Plan:
    """A left, semi or anti join whose condition holds subqueries that read both sides.

    Each right row is taken once for each distinct value of the left columns that are read; with these
    beside it, it can have the subqueries' values attached, and only the copy for its own left row joins.
    """
    kind, left, right, condition = node.kind, node.left, node.right, node.condition
    width, right_width = len(left.schema), len(right.schema)
    inside = [
        e
        for part in conjuncts(condition)
        for e in walk(part)
        if isinstance(e, (Exists, InSubquery, ScalarSubquery))
    ]
    reads = sorted({read for e in inside for read in columns_of(e) if read < width})
    keys = tuple(column(left.schema, read) for read in reads)
    domain = Distinct(Project(left, keys, tuple(key.name for key in keys)))
    rows = Attached(Join(JoinKind.INNER, right, domain, TRUE), facts)

    def settle(e: Expression) -> Expression:
        if not isinstance(e, (Exists, InSubquery, ScalarSubquery)):
            return map_children(e, settle)
        value = substitute(
            e,
            lambda c: (
                _moved(c, -width)
                if c.index >= width
                else replace(c, index=right_width + reads.index(c.index))
            ),
        )
        return shift(rows.value(value), width)

    settled = settle(condition)
    own = [same(key, _moved(replace(key, index=i), width + right_width)) for i, key in enumerate(keys)]
    joined = Join(kind, left, rows.plan, conjunction((settled, *own)))
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return joined
    columns = tuple(column(joined.schema, index) for index in range(width + right_width))
    return Project(joined, columns, tuple(found.name for found in columns))
