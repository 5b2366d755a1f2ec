"""Plans and expressions as text for people: one line a node, inputs indented below.

The text of an expression is SQL, with the names of columns where they have one and `#i` where not.
"""

from __future__ import annotations

import datetime as dt
from typing import assert_never

from everview.language.casts import to_text
from everview.language.expressions import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expression,
    InList,
    InSubquery,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    OuterColumn,
    Parameter,
    ScalarSubquery,
    walk,
)
from everview.language.plan import (
    Aggregate,
    AggregateCall,
    Distinct,
    Except,
    Filter,
    Fixpoint,
    Frame,
    Intersect,
    Join,
    Plan,
    Project,
    RecursiveScan,
    Scan,
    SortKey,
    TopK,
    UnionAll,
    Values,
    Window,
    WindowCall,
    expressions_of,
)
from everview.language.types import Kind

__all__ = ["expression_text", "plan_text"]

_INFIX = {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "||"}


def expression_text(expression: Expression) -> str:
    """An expression as SQL."""
    match expression:
        case Column(index, _, name):
            return name or f"#{index}"
        case OuterColumn(depth, index, _, name):
            return f"{'outer.' * depth}{name or f'#{index}'}"
        case Literal():
            return _literal(expression)
        case Parameter(name):
            return f"?{name}" if name.isdigit() else f":{name}"
        case Call(function, (left, right)) if function in _INFIX:
            return f"{_nested(left)} {function} {_nested(right)}"
        case Call("neg", (operand,)):
            return f"-{_nested(operand)}"
        case Call(("like" | "ilike") as function, (text, pattern, _)):
            return f"{_nested(text)} {function.upper()} {_nested(pattern)}"
        case Call(function, arguments):
            return f"{function}({', '.join(map(expression_text, arguments))})"
        case Cast(operand, target):
            return f"CAST({expression_text(operand)} AS {target})"
        case And(arguments):
            return " AND ".join(map(_nested, arguments))
        case Or(arguments):
            return " OR ".join(map(_nested, arguments))
        case Not(IsNull(operand)):
            return f"{_nested(operand)} IS NOT NULL"
        case Not(operand):
            return f"NOT {_nested(operand)}"
        case IsNull(operand):
            return f"{_nested(operand)} IS NULL"
        case IsDistinct(left, right):
            return f"{_nested(left)} IS DISTINCT FROM {_nested(right)}"
        case InList(operand, items):
            return f"{_nested(operand)} IN ({', '.join(map(expression_text, items))})"
        case Case(branches, default):
            whens = (f"WHEN {expression_text(c)} THEN {expression_text(r)}" for c, r in branches)
            return f"CASE {' '.join(whens)} ELSE {expression_text(default)} END"
        case Exists():
            return "EXISTS (subquery)"
        case InSubquery(operand):
            return f"{_nested(operand)} IN (subquery)"
        case ScalarSubquery():
            return "(subquery)"
        case _:
            assert_never(expression)


def _nested(expression: Expression) -> str:
    """An operand, in parentheses where it is an operator itself."""
    text = expression_text(expression)
    match expression:
        case And() | Or() | Not() | IsNull() | IsDistinct() | InList() | InSubquery():
            return f"({text})"
        case Call(function) if function in _INFIX or function in ("like", "ilike"):
            return f"({text})"
        case _:
            return text


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if literal.type.kind in (Kind.BOOLEAN, Kind.BIGINT, Kind.DECIMAL):
        return to_text(value)
    quoted = "'" + to_text(value).replace("'", "''") + "'"
    match value:
        case float():
            return f"DOUBLE {quoted}"
        case dt.datetime():
            return f"TIMESTAMP {quoted}"
        case dt.date():
            return f"DATE {quoted}"
        case bytes():
            return f"BLOB {quoted}"
        case _:
            return quoted


def plan_text(plan: Plan) -> str:
    """A plan as a tree; the plans of subqueries stand below the node whose expression holds them."""
    return "\n".join(_lines(plan, ""))


def _lines(plan: Plan, indent: str) -> list[str]:
    lines = [indent + _node(plan)]
    for expression in expressions_of(plan):
        for part in walk(expression):
            if isinstance(part, (Exists, InSubquery, ScalarSubquery)):
                lines.append(f"{indent}  subquery:")
                lines += _lines(part.plan, indent + "    ")
    for child in plan.inputs:
        lines += _lines(child, indent + "  ")
    return lines


def _node(plan: Plan) -> str:
    match plan:
        case Scan(name):
            return f"Scan {name}"
        case RecursiveScan(name):
            return f"RecursiveScan {name}"
        case Values(_, rows):
            return f"Values {len(rows)} rows"
        case Filter(_, predicate):
            return f"Filter {expression_text(predicate)}"
        case Project(_, expressions, names):
            return "Project " + ", ".join(map(_named, expressions, names))
        case Join(kind, _, _, condition):
            return f"Join {kind.value} on {expression_text(condition)}"
        case UnionAll(inputs):
            return f"UnionAll of {len(inputs)}"
        case Distinct():
            return "Distinct"
        case Intersect(all=keep) | Except(all=keep):
            return type(plan).__name__ + (" all" if keep else "")
        case Aggregate(_, keys, aggregates):
            by = f" by {', '.join(map(expression_text, keys))}" if keys else ""
            return f"Aggregate {', '.join(map(_aggregate, aggregates))}".rstrip() + by
        case TopK(_, order, ties, limit, offset):
            parts = [f"order {', '.join(map(_sort, order))}" if order else "", f"then {len(ties)} ties"]
            parts.append(f"limit {expression_text(limit)}" if limit is not None else "")
            parts.append(f"offset {expression_text(offset)}" if offset is not None else "")
            return "TopK " + " ".join(part for part in parts if part)
        case Window(_, calls):
            return "Window " + ", ".join(map(_window, calls))
        case Fixpoint(names, result=result):
            return f"Fixpoint {result} of {', '.join(names)}"
        case _:
            assert_never(plan)


def _named(expression: Expression, name: str) -> str:
    text = expression_text(expression)
    return text if text == name else f"{text} AS {name}"


def _aggregate(call: AggregateCall) -> str:
    argument = "*" if call.argument is None else expression_text(call.argument)
    condition = f" FILTER ({expression_text(call.filter)})" if call.filter is not None else ""
    return f"{call.function}({'DISTINCT ' if call.distinct else ''}{argument}){condition}"


def _sort(key: SortKey) -> str:
    direction = " DESC" if key.descending else ""
    nulls = "" if key.nulls_first == key.descending else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return expression_text(key.expression) + direction + nulls


def _window(call: WindowCall) -> str:
    arguments = ", ".join(map(expression_text, call.arguments))
    parts = []
    if call.partition:
        parts.append("PARTITION BY " + ", ".join(map(expression_text, call.partition)))
    if call.order:
        parts.append("ORDER BY " + ", ".join(map(_sort, call.order)))
    if call.frame is not None:
        parts.append(_frame(call.frame))
    return f"{call.function}({arguments}) OVER ({' '.join(parts)})"


def _frame(frame: Frame) -> str:
    def bound(distance: int | None, unbounded: str) -> str:
        if distance is None:
            return f"UNBOUNDED {unbounded}"
        if distance == 0:
            return "CURRENT ROW"
        return f"{abs(distance)} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"

    return f"{frame.mode.upper()} {bound(frame.start, 'PRECEDING')} TO {bound(frame.end, 'FOLLOWING')}"
