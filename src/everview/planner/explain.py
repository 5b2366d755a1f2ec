"""A plan as a tree of text: one line a node, inputs indented below it.

Plans inside subquery expressions follow the node that holds them, marked `subquery`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from everview.language.expressions import TRUE, Column, Exists, Expression, InSubquery, ScalarSubquery, walk
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
from everview.planner.expression_text import aggregate_text, expression_text, sort_text, window_text

__all__ = ["explain", "explain_rewrite", "node_text"]


def explain(plan: Plan) -> str:
    """The tree of a plan, without a line's end after the last line."""
    return "\n".join(_lines(plan, ""))


def explain_rewrite(before: Plan, after: Plan) -> str:
    """The tree as written and the tree as rewritten, or once if they are the same."""
    if before == after:
        return explain(before)
    return f"as written:\n{_indented(explain(before))}\nrewritten:\n{_indented(explain(after))}"


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())


def _lines(plan: Plan, indent: str) -> Iterator[str]:
    yield indent + node_text(plan)
    for expression in expressions_of(plan):
        for part in walk(expression):
            if isinstance(part, (Exists, InSubquery, ScalarSubquery)):
                yield indent + "  subquery"
                yield from _lines(part.plan, indent + "    ")
    for child in plan.inputs:
        yield from _lines(child, indent + "  ")


def _names(plan: Plan) -> list[str]:
    """Names for the columns of a plan, told apart where two are the same."""
    return _told_apart([field.name for field in plan.schema])


def _told_apart(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return result


def node_text(plan: Plan) -> str:
    """One line about the node itself; columns that have the same name are shown as x, x#2, …."""
    match plan:
        case Scan(name):
            return f"scan {name}"
        case RecursiveScan(name):
            return f"recursive scan {name}"
        case Values(_, rows):
            return f"values {len(rows)} row{'s' if len(rows) != 1 else ''}: " + ", ".join(
                "(" + ", ".join(expression_text(cell, ()) for cell in row) + ")" for row in rows
            )
        case Filter(child, predicate):
            return f"filter {expression_text(predicate, _names(child))}"
        case Project(child, expressions, names):
            inside = _names(child)
            return "project " + ", ".join(
                name
                if isinstance(e, Column) and inside[e.index] == name
                else f"{expression_text(e, inside)} AS {name}"
                for e, name in zip(expressions, names, strict=True)
            )
        case Join(kind, left, right, condition):
            return _join_text(kind, left, right, condition)
        case UnionAll():
            return "union all"
        case Distinct():
            return "distinct"
        case Intersect(all=keep):
            return "intersect" + (" all" if keep else "")
        case Except(all=keep):
            return "except" + (" all" if keep else "")
        case Aggregate(child, keys, aggregates):
            inside = _names(child)
            calls = ", ".join(aggregate_text(call, inside) for call in aggregates)
            by = ", ".join(expression_text(key, inside) for key in keys)
            return "aggregate " + (calls or "nothing") + (f" by {by}" if keys else "")
        case TopK():
            return _top_text(plan)
        case Window(child, calls):
            return "window " + ", ".join(window_text(call, _names(child)) for call in calls)
        case Fixpoint(names, result=result):
            others = ", ".join(names)
            return f"fixpoint {result}" + (f" of {others}" if len(names) > 1 else "")
        case _:
            assert_never(plan)


def _join_text(kind: JoinKind, left: Plan, right: Plan, condition: Expression) -> str:
    if condition == TRUE and kind is JoinKind.INNER:
        return "cross join"
    names = _told_apart([field.name for field in (*left.schema, *right.schema)])
    return f"{kind.value} join on {expression_text(condition, names)}"


def _top_text(plan: TopK) -> str:
    names = _names(plan.input)
    parts = []
    if plan.limit is not None:
        parts.append(f"limit {expression_text(plan.limit, ())}")
    if plan.offset is not None:
        parts.append(f"offset {expression_text(plan.offset, ())}")
    if plan.order:
        parts.append("order by " + ", ".join(sort_text(key, names) for key in plan.order))
    return "top " + " ".join(parts)
