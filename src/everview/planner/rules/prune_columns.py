"""Prune columns: what nobody reads is not computed.

A projection, aggregate or window call whose column is not read above is left out, and inputs give up
columns in turn. A Scan stays whole: its columns cost nothing where they are, and an index on it is found
by it. Rows are never lost or merged: below DISTINCT, INTERSECT, EXCEPT and recursion every column is read,
group keys stay, and so do the columns by which TopK and Window break ties (✗ dropping one of these would give
another choice of rows among equals).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

from everview.language.expressions import Expression, columns_of, substitute
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
    map_inputs,
)
from everview.planner.conditions import all_columns, column

__all__ = ["prune_columns"]

Places: TypeAlias = Mapping[int, int]
"""Where the columns that were asked for stand now; every one of them is there."""


def prune_columns(plan: Plan) -> Plan:
    """The plan with the same result, narrower inside."""
    wanted = range(len(plan.schema))
    return _exactly(*_prune(plan, frozenset(wanted)), wanted, plan)


def _exactly(plan: Plan, places: Places, wanted: Iterable[int], like: Plan) -> Plan:
    """The plan with just the wanted columns, in this order and under their old names."""
    order = [places[index] for index in wanted]
    names = tuple(like.schema[index].name for index in wanted)
    if order == list(range(len(plan.schema))) and names == tuple(f.name for f in plan.schema):
        return plan
    columns = tuple(column(plan.schema, place) for place in order)
    return Project(plan, columns, names)


def _identity(plan: Plan) -> dict[int, int]:
    return {index: index for index in range(len(plan.schema))}


def _moved(expression: Expression, places: Places) -> Expression:
    return substitute(expression, lambda c: replace(c, index=places[c.index]))


def _reads(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset(read for expression in expressions for read in columns_of(expression))


def _prune(plan: Plan, needed: frozenset[int]) -> tuple[Plan, Places]:
    """A plan with the needed columns at least, and where they are."""
    match plan:
        case Scan() | RecursiveScan() | Values():
            return plan, _identity(plan)
        case Filter(child, predicate):
            below, places = _prune(child, needed | columns_of(predicate))
            return Filter(below, _moved(predicate, places)), places
        case Project():
            return _project(plan, needed)
        case Join():
            return _join(plan, needed)
        case UnionAll(inputs):
            wanted = sorted(needed) or [0] * bool(plan.schema)
            pruned = [_prune(child, frozenset(wanted)) for child in inputs]
            sides = tuple(_exactly(*one, wanted, plan) for one in pruned)
            return UnionAll(sides), {old: new for new, old in enumerate(wanted)}
        case Distinct() | Intersect() | Except() | Fixpoint():
            return map_inputs(plan, prune_columns), _identity(plan)
        case Aggregate():
            return _aggregate(plan, needed)
        case TopK(child):
            below, places = _prune(child, needed | _reads(expressions_of(plan)))
            return _top(plan, below, places), places
        case Window():
            return _window(plan, needed)
        case _:
            assert_never(plan)


def _top(plan: TopK, below: Plan, places: Places) -> Plan:
    return TopK(
        below,
        tuple(key.map_expressions(lambda e: _moved(e, places)) for key in plan.order),
        tuple(key.map_expressions(lambda e: _moved(e, places)) for key in plan.ties),
        plan.limit,
        plan.offset,
    )


def _project(plan: Project, needed: frozenset[int]) -> tuple[Plan, Places]:
    # One column stays even if none is read: SQL has no rows without columns.
    kept = sorted(needed) or [0] * bool(plan.expressions)
    below, places = _prune(plan.input, _reads(plan.expressions[index] for index in kept))
    expressions = tuple(_moved(plan.expressions[index], places) for index in kept)
    names = tuple(plan.names[index] for index in kept)
    new = {old: at for at, old in enumerate(kept)}
    same = expressions == all_columns(below.schema) and names == tuple(f.name for f in below.schema)
    return (below if same else Project(below, expressions, names)), new


def _join(plan: Join, needed: frozenset[int]) -> tuple[Plan, Places]:
    width = len(plan.left.schema)
    read = needed | columns_of(plan.condition)
    left, left_places = _prune(plan.left, frozenset(index for index in read if index < width))
    right, right_places = _prune(plan.right, frozenset(index - width for index in read if index >= width))
    new_width = len(left.schema)
    both = {**left_places, **{index + width: place + new_width for index, place in right_places.items()}}
    joined = Join(plan.kind, left, right, _moved(plan.condition, both))
    return joined, left_places if plan.kind in (JoinKind.SEMI, JoinKind.ANTI) else both


def _aggregate(plan: Aggregate, needed: frozenset[int]) -> tuple[Plan, Places]:
    width = len(plan.keys)
    calls = [index for index in range(len(plan.aggregates)) if index + width in needed]
    if not calls and not width:
        calls = [0] if plan.aggregates else []
    trimmed = Aggregate(
        plan.input,
        plan.keys,
        tuple(plan.aggregates[index] for index in calls),
        plan.names[:width] + tuple(plan.names[width + index] for index in calls),
    )
    below, places = _prune(plan.input, _reads(expressions_of(trimmed)))
    new = {index: index for index in range(width)} | {width + old: width + at for at, old in enumerate(calls)}
    node = Aggregate(
        below,
        tuple(_moved(key, places) for key in trimmed.keys),
        tuple(call.map_expressions(lambda e: _moved(e, places)) for call in trimmed.aggregates),
        trimmed.names,
    )
    return node, new


def _window(plan: Window, needed: frozenset[int]) -> tuple[Plan, Places]:
    width = len(plan.input.schema)
    kept = [index for index in range(len(plan.calls)) if index + width in needed]
    calls = [plan.calls[index] for index in kept]
    inside = frozenset(index for index in needed if index < width)
    below, places = _prune(plan.input, inside | _reads(part for call in calls for part in call.expressions))
    if not calls:
        return below, places
    node = Window(
        below,
        tuple(call.map_expressions(lambda e: _moved(e, places)) for call in calls),
        tuple(plan.names[index] for index in kept),
    )
    new_width = len(below.schema)
    return node, {**places, **{width + old: new_width + at for at, old in enumerate(kept)}}
