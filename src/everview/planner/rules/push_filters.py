"""Push filters: each condition is checked as early as its columns are known.

filter(p AND q, R) = filter(p, filter(q, R)); a filter commutes with every node whose output rows carry
the columns it reads unchanged: Project (with its expressions put in), UnionAll, Distinct, INTERSECT and
EXCEPT (both sides), Aggregate (group keys), Window (columns by which every call is partitioned), and the
side of a join that is not filled up with NULLs. Conditions over both sides of an inner join become its
ON, so a cross join with a filter is a join. A condition above an outer join that is never true for the
rows the join filled up makes it an inner one (or a full join a left or right one).

✗ Not below LIMIT; not a condition of ON on the side that an outer join keeps; not a condition without
columns below a global aggregate, which has a row even over nothing.

About conditions that can fail: a failing call is NULL, and NULL drops the row. A condition that moves
down may be evaluated for rows that another condition, or the lack of a partner, would have dropped
before. Such a row is dropped either way, so the result is the same; only the count of failures may
differ. A condition never moves to where it could keep a row that it dropped before. In a query, where a
failure is an error, that error may therefore come from a row that would not have been in the result, as
in PostgreSQL; inside CASE nothing is moved.

Adjacent filters are merged on the way, and adjacent projections where no work would be done twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from everview.language.expressions import (
    Column,
    Expression,
    Literal,
    OuterColumn,
    Parameter,
    columns_of,
    conjunction,
    shift,
    substitute,
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
    map_inputs,
)
from everview.planner.conditions import all_columns, conjuncts, has_subquery, rejects_null, simplify

__all__ = ["push_filters"]

_Predicates = Sequence[Expression]


def push_filters(plan: Plan) -> Plan:
    """The plan with conditions pushed down as far as they go."""
    return _push(plan, ())


def _filtered(plan: Plan, predicates: Iterable[Expression]) -> Plan:
    """The plan under the conditions that could not go further."""
    condition = conjunction(tuple(dict.fromkeys(predicates)))
    return Filter(plan, condition) if conjuncts(condition) else plan


def _split(predicates: _Predicates, inside: Iterable[int]) -> tuple[list[Expression], list[Expression]]:
    """Those that read these columns only (and no subquery, which reads them by position), and the rest."""
    allowed = frozenset(inside)
    chosen = [p for p in predicates if not has_subquery(p) and columns_of(p) <= allowed]
    kept = set(chosen)
    return chosen, [p for p in predicates if p not in kept]


def _push(plan: Plan, predicates: _Predicates) -> Plan:
    """The plan filtered by all predicates, which are over its columns."""
    match plan:
        case Scan() | RecursiveScan() | Values():
            return _filtered(plan, predicates)
        case Filter(child, predicate):
            return _push(child, (*conjuncts(simplify(predicate)), *predicates))
        case Project():
            return _project(plan, predicates)
        case Join():
            return _join(plan, predicates)
        case UnionAll() | Distinct() | Intersect() | Except():
            down, rest = _split(predicates, range(len(plan.schema)))
            return _filtered(map_inputs(plan, lambda child: _push(child, down)), rest)
        case Aggregate(child, keys):
            # Without keys there is no group to drop: the one row stays, whatever happens to its input.
            down, rest = _split(predicates, range(len(keys))) if keys else ([], list(predicates))
            if any(map(has_subquery, keys)):
                down, rest = [], list(predicates)
            moved = [substitute(p, lambda c: keys[c.index]) for p in down]
            return _filtered(replace(plan, input=_push(child, moved)), rest)
        case Window(child, calls):
            common = frozenset.intersection(*(frozenset(call.partition) for call in calls))
            columns = [part.index for part in common if isinstance(part, Column)]
            down, rest = _split(predicates, columns)
            return _filtered(replace(plan, input=_push(child, down)), rest)
        case TopK(child, _, _, None, None):
            down, rest = _split(predicates, range(len(plan.schema)))
            return _filtered(replace(plan, input=_push(child, down)), rest)
        case TopK(child):
            return _filtered(replace(plan, input=_push(child, ())), predicates)
        case Fixpoint():
            # What is filtered above may be needed to derive what is not.
            return _filtered(map_inputs(plan, push_filters), predicates)
        case _:
            assert_never(plan)


def _project(plan: Project, predicates: _Predicates) -> Plan:
    expressions = plan.expressions
    plain = [index for index, e in enumerate(expressions) if not has_subquery(e)]
    down, rest = _split(predicates, plain)
    moved = [simplify(substitute(p, lambda c: expressions[c.index])) for p in down]
    merged = _merged(replace(plan, input=_push(plan.input, moved)))
    return _filtered(merged, rest)


def _merged(plan: Project) -> Plan:
    """A projection over a projection as one; the identity as none."""
    below = plan.input
    if isinstance(below, Project) and _is_cheap(plan, below):
        inside = below.expressions
        return _merged(
            Project(
                below.input,
                tuple(substitute(e, lambda c: inside[c.index]) for e in plan.expressions),
                plan.names,
            )
        )
    names = tuple(field.name for field in below.schema)
    if plan.names == names and plan.expressions == all_columns(below.schema):
        return below
    return plan


def _is_cheap(plan: Project, below: Project) -> bool:
    """Whether merging computes nothing twice, and leaves every subquery over columns."""
    if any(has_subquery(e) for e in (*plan.expressions, *below.expressions)):
        return False
    used = [part.index for e in plan.expressions for part in walk(e) if isinstance(part, Column)]
    simple = (Column, Literal, Parameter, OuterColumn)
    return all(isinstance(e, simple) or used.count(index) <= 1 for index, e in enumerate(below.expressions))


def _join(plan: Join, predicates: _Predicates) -> Plan:
    plan = _strengthened(plan, predicates)
    width, total = len(plan.left.schema), len(plan.left.schema) + len(plan.right.schema)
    left_side, right_side = range(width), range(width, total)
    on: _Predicates = conjuncts(simplify(plan.condition))
    above: _Predicates = predicates
    to_left: list[Expression] = []
    to_right: list[Expression] = []
    match plan.kind:
        case JoinKind.INNER:
            movable, above = _split(above, range(total))
            to_left, rest = _split((*on, *movable), left_side)
            to_right, on = _split(rest, right_side)
        case JoinKind.LEFT:
            to_left, above = _split(above, left_side)
            to_right, on = _split(on, right_side)
        case JoinKind.RIGHT:
            to_right, above = _split(above, right_side)
            to_left, on = _split(on, left_side)
        case JoinKind.FULL:
            pass
        case JoinKind.SEMI:
            to_left, above = _split(above, left_side)
            more, rest = _split(on, left_side)
            to_left = [*to_left, *more]
            to_right, on = _split(rest, right_side)
        case JoinKind.ANTI:
            to_left, above = _split(above, left_side)
            to_right, on = _split(on, right_side)
        case _:
            assert_never(plan.kind)
    left = _push(plan.left, to_left)
    right = _push(plan.right, [shift(p, -width) for p in to_right])
    return _filtered(Join(plan.kind, left, right, conjunction(tuple(dict.fromkeys(on)))), above)


def _strengthened(plan: Join, predicates: _Predicates) -> Join:
    """The join without the rows that a condition above throws away again."""
    width = len(plan.left.schema)
    keeps_left, keeps_right = (
        plan.kind in (JoinKind.LEFT, JoinKind.FULL),
        plan.kind in (JoinKind.RIGHT, JoinKind.FULL),
    )
    if keeps_left and any(rejects_null(p, lambda i: i >= width) for p in predicates):
        keeps_left = False
    if keeps_right and any(rejects_null(p, lambda i: i < width) for p in predicates):
        keeps_right = False
    if plan.kind not in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL):
        return plan
    kinds = {
        (True, True): JoinKind.FULL,
        (True, False): JoinKind.LEFT,
        (False, True): JoinKind.RIGHT,
        (False, False): JoinKind.INNER,
    }
    return replace(plan, kind=kinds[keeps_left, keeps_right])
