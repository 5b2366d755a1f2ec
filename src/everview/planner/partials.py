"""Partial aggregates: an aggregate over rows that only their owners write, taken apart by owner (Titan §3).

What the rows of one owner come to travels instead of the rows: an entry for each group that the owner has
rows in, with numbers that add up, least and greatest values, exact sums of DOUBLEs, and sketches. A site that
has the entries of all owners merges them, and what stands above the aggregate is a local circuit over that.

It takes rows of which each belongs to one owner: select, project and UNION ALL over relations that declare an
owner. Of a relation with a primary key the owner is part of the key, else another site could take a key over.
It takes an aggregate whose value over all rows follows from its values over the owners' rows. So do the first
rows in an order, of all or of each group: they are among the first rows of some owner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from everview.language.aggregates import AggregateCall, SortKey, WindowCall
from everview.language.expressions import Call, Case, Cast, Column, Expression, Literal, shift
from everview.language.plan import Aggregate, Filter, Plan, Project, Scan, TopK, UnionAll, Window, walk_plan
from everview.language.relations import Relation
from everview.language.types import BIGINT, DOUBLE
from everview.planner.branches import Branch, branch_plan, branches_of
from everview.planner.circuit.sums import Sums, adding
from everview.planner.circuit.weighted import (
    ONE,
    ZERO,
    columns,
    compare,
    or_zero,
    project,
    total,
)
from everview.planner.conditions import conjuncts

__all__ = ["Partials", "is_partials", "may_be_partials", "partials_of"]

_TEXTS = ("exact", "sketch_marks", "sketch_counts")
"""What of an aggregate travels as a text of a form of its own."""

_MARK = "#partial."
"""Between the view's name and what it says: no core is called so."""

MOST_RANKED = 1_000
"""How many of the first rows each owner may tell of: each that enters at the top moves all below it."""


@dataclass(frozen=True, slots=True)
class Partials:
    """An aggregate that travels by owner: what is computed where rows are, and merged where they are not.

    Its entries are the rows of `plan`, which begin with the owner. The first `width` columns tell them apart;
    those `shown` are the group, or the row, that an entry is about; those of `texts` hold exact sums, or
    sketches: each with the aggregate that it is of.
    """

    name: str
    view: str
    inputs: tuple[str, ...]
    """The base relations, in the order of their names."""
    plan: Plan
    width: int
    shown: tuple[int, ...]
    texts: tuple[tuple[int, str], ...]
    merged: Plan
    """Over the entries of all owners."""


def is_partials(stream: str) -> bool:
    """Whether a stream is called as those of partial aggregates are."""
    return _MARK in stream


def may_be_partials(node: Plan) -> bool:
    """Whether a node is an aggregate, or the first rows in an order, or those of each group."""
    return isinstance(node, Aggregate | TopK) or (isinstance(node, Filter) and _last_place(node) is not None)


def partials_of(view: str, node: Plan, relations: Mapping[str, Relation]) -> Partials | str:
    """Return what may be partials, taken apart by owner; or why it is not."""
    made: _Made | str
    match node:
        case Aggregate() | TopK():
            owned = _owned(node.input, relations)
        case Filter(Window(rows)):
            owned = _owned(rows, relations)
        case _:
            return "it is no aggregate"
    if isinstance(owned, str):
        return owned
    match node:
        case Aggregate():
            made = _aggregate(node, owned)
        case TopK():
            made = _first(node, owned)
        case _:
            made = _first_of_groups(node, owned)
    if isinstance(made, str):
        return made
    digest = hashlib.sha256(repr((node, made.plan)).encode()).hexdigest()[:8]
    name = f"{view}{_MARK}{digest}"
    inputs = tuple(sorted({part.name for part in walk_plan(owned) if isinstance(part, Scan)}))
    merged = made.merge(Scan(name, made.plan.schema))
    return Partials(name, view, inputs, made.plan, made.width, made.shown, made.texts, merged)


class _Made(NamedTuple):
    """Entries, and the plan over those of all owners."""

    plan: Plan
    width: int
    shown: tuple[int, ...]
    texts: tuple[tuple[int, str], ...]
    merge: Callable[[Scan], Plan]


def _owned(plan: Plan, relations: Mapping[str, Relation]) -> Plan | str:
    """The rows of a plan, behind the owner of each; or why a row has none."""
    branches = branches_of(plan)
    if branches is None:
        return "what it aggregates is more than selected and projected rows"
    found: list[Branch] = []
    for branch in branches:
        if len(branch.atoms) != 1:
            return "a row that it aggregates is not made from one base row"
        (atom,) = branch.atoms
        relation = relations.get(atom.name)
        if relation is None or relation.owner is None:
            return f"{atom.name} declares no owner"
        if relation.is_keyed and relation.owner not in relation.key:
            return f"the owner of a row of {atom.name} is not in its primary key"
        position = relation.columns.index(relation.owner)
        owner = Column(position, relation.schema[position].type, relation.owner)
        found.append(Branch(branch.atoms, branch.conditions, (owner, *branch.expressions)))
    if not found:
        return "it reads nothing"
    names = ["owner", *(field.name for field in plan.schema)]
    plans = tuple(branch_plan(branch, names) for branch in found)
    return UnionAll(plans) if len(plans) > 1 else plans[0]


# Aggregates.

_SKETCHES = {"sketch_marks": "sketch_marks_union", "sketch_counts": "sketch_counts_sum"}
"""Of each sketch, what merges those of owners."""


@dataclass(frozen=True, slots=True)
class _Value:
    """Where a call's value is: in columns of the entries that add up, or in one of them."""

    call: AggregateCall
    sums: Sums | None
    places: tuple[int, ...]


def _aggregate(node: Aggregate, owned: Plan) -> _Made | str:
    """The groups' sums, extremes, exact sums of DOUBLEs, and sketches."""
    width = len(node.keys)
    flat, arguments = _prepared(node, owned)
    values: list[_Value] = []
    calls: list[AggregateCall] = [AggregateCall("count", None)]
    for call, value in zip(node.aggregates, arguments, strict=True):
        ranked = call.function in ("min", "max")
        if call.distinct and not ranked:
            return f"{call.function} of different values does not follow from those of each owner"
        own = adding(call.function, value.type, call.type)
        if own is not None:
            parts = [total(part) for part in own.contributions(value, ONE)]
        elif ranked or call.function in _SKETCHES:
            parts = [AggregateCall(call.function, value)]
        elif call.type == DOUBLE:
            parts = [AggregateCall("exact", value), AggregateCall("count", value)]
        else:
            return f"{call.function} of a {value.type} does not add up in so many digits"
        values.append(_Value(call, own, tuple(_place(calls, part) for part in parts)))
    names = ("owner", *node.names[:width], *(f"x{i}" for i in range(len(calls))))
    groups = Aggregate(flat, columns(flat)[: width + 1], tuple(calls), names)
    texts = tuple((width + 1 + i, call.function) for i, call in enumerate(calls) if call.function in _TEXTS)
    shown = tuple(range(1, width + 1))
    return _Made(groups, width + 1, shown, texts, lambda scan: _merged(node, scan, values, calls))


def _place(found: list[AggregateCall], one: AggregateCall) -> int:
    """Where a call stands among those that were found, put there if it is new."""
    if one not in found:
        found.append(one)
    return found.index(one)


def _prepared(node: Aggregate, owned: Plan) -> tuple[Plan, list[Column]]:
    """Owner, keys, and each call's argument where its filter holds, else NULL: every call skips NULLs.

    An argument that several calls have is one column, so that what they add up is one, too.
    """
    arguments: list[Expression] = []
    for call in node.aggregates:
        argument = ONE if call.argument is None else shift(call.argument, 1)
        if call.filter is not None:
            argument = Case(((shift(call.filter, 1), argument),), Literal(None, argument.type))
        arguments.append(argument)
    different = list(dict.fromkeys(arguments))
    flat = project(owned, (columns(owned)[0], *(shift(key, 1) for key in node.keys), *different))
    behind = columns(flat)[1 + len(node.keys) :]
    return flat, [behind[different.index(argument)] for argument in arguments]


_OVER = {"min": "min", "max": "max", "exact": "exact_sum", **_SKETCHES}
"""What merges the values of owners; the rest adds up."""


def _merged(node: Aggregate, scan: Scan, values: Sequence[_Value], calls: Sequence[AggregateCall]) -> Plan:
    """The groups' rows over all owners."""
    width, every = len(node.keys), columns(scan)[1:]
    over = tuple(
        AggregateCall(_OVER.get(call.function, "sum"), column)
        for call, column in zip(calls, every[width:], strict=True)
    )
    merged: Plan = Aggregate(scan, every[:width], over, tuple(f"x{i}" for i in range(len(every))))
    got = columns(merged)
    if width:
        merged = Filter(merged, compare(got[width], ">", ZERO))
    results: list[Expression] = []
    for value in values:
        found = [got[width + place] for place in value.places]
        if value.sums is not None:
            results.append(value.sums.result([or_zero(part) for part in found]))
        elif value.call.function == "avg":
            results.append(_mean(*found))
        else:
            results.append(found[0])
    return Project(merged, (*got[:width], *results), node.names)


def _mean(total: Expression, count: Expression) -> Expression:
    """The rounded sum divided; there is none over no values."""
    there = compare(or_zero(count), ">", ZERO)
    quotient = Call("/", (total, Cast(count, DOUBLE)), DOUBLE)
    return Case(((there, quotient),), Literal(None, DOUBLE))


# The first rows in an order.


def _first(node: TopK, owned: Plan) -> _Made | str:
    """Each owner's first rows, numbered in their order: so many as the whole may need."""
    limit = node.limit.value if isinstance(node.limit, Literal) else None
    offset = node.offset.value if isinstance(node.offset, Literal) else 0
    if limit is None or (node.offset is not None and not isinstance(node.offset, Literal)):
        return "an order without a limit needs all rows"
    call = WindowCall("row_number", (), (), node.order, node.ties, None, BIGINT)
    return _ranked(
        owned,
        call,
        int(limit) + int(offset or 0),
        lambda rows: TopK(rows, node.order, node.ties, node.limit, node.offset),
    )


def _first_of_groups(node: Filter, owned: Plan) -> _Made | str:
    """Each owner's first rows of each group: rows of a window whose numbers are bounded."""
    window, most = node.input, _last_place(node)
    if not isinstance(window, Window) or most is None:
        return "its rows are not numbered up to a bound"
    (call,) = window.calls
    return _ranked(
        owned, call, most, lambda rows: Filter(Window(rows, window.calls, window.names), node.predicate)
    )


def _last_place(node: Filter) -> int | None:
    """The bound of the numbers that a filter leaves of a window that does nothing but number its rows."""
    window = node.input
    if not isinstance(window, Window) or [call.function for call in window.calls] != ["row_number"]:
        return None
    place = len(window.schema) - 1
    for part in conjuncts(node.predicate):
        match part:
            case Call("<=" | "=", (Column(index), Literal(int() as most))) if index == place:
                return most
            case Call("<", (Column(index), Literal(int() as most))) if index == place:
                return most - 1
    return None


def _ranked(owned: Plan, call: WindowCall, most: int, above: Callable[[Plan], Plan]) -> _Made | str:
    """Of each owner the rows that are numbered up to a bound; `above` numbers those of all owners again."""
    if most > MOST_RANKED:
        return f"it takes more than the first {MOST_RANKED:,} rows of each owner"
    owner, *rows = columns(owned)
    order, ties = (tuple(_behind(key) for key in keys) for keys in (call.order, call.ties))
    groups = tuple(shift(expression, 1) for expression in call.partition)
    rank = WindowCall("row_number", (), (owner, *groups), order, ties, None, BIGINT)
    ranked = Window(owned, (rank,), (f"x{len(owned.schema)}",))
    number = columns(ranked)[-1]
    first = Filter(ranked, compare(number, "<=", Literal(most, BIGINT)))
    names = tuple(field.name for field in owned.schema[1:])
    key = ("owner", *(f"group{i}" for i in range(len(groups))), "rank")
    plan = Project(first, (owner, *groups, number, *rows), (*key, *names))
    width = len(key)

    def merge(scan: Scan) -> Plan:
        return above(Project(scan, columns(scan)[width:], names))

    return _Made(plan, width, tuple(range(width, len(plan.schema))), (), merge)


def _behind(key: SortKey) -> SortKey:
    return key.map_expressions(lambda expression: shift(expression, 1))
