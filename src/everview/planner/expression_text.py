"""Expressions as text for people: close to the SQL they came from.

Columns are shown by name; `text` takes the names of the input's columns, since a name inside an
expression may have been changed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from everview.language.aggregates import AggregateCall, SortKey, WindowCall
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
)

__all__ = ["aggregate_text", "expression_text", "sort_text", "window_text"]

_INFIX = frozenset(["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||"])


def expression_text(expression: Expression, names: Sequence[str]) -> str:
    """The expression over columns of these names."""

    def text(e: Expression) -> str:
        return expression_text(e, names)

    def inner(e: Expression) -> str:
        compound = isinstance(e, (And, Or, Not, IsDistinct, IsNull, InList)) or (
            isinstance(e, Call) and e.function in _INFIX
        )
        return f"({text(e)})" if compound else text(e)

    match expression:
        case Column(index):
            return names[index]
        case OuterColumn(depth, index, _, name):
            return f"outer{depth}.{name or index}"
        case Literal(value):
            return _literal(value)
        case Parameter(name):
            return f":{name}"
        case Call(name, (left, right)) if name in _INFIX:
            return f"{inner(left)} {name} {inner(right)}"
        case Call(name, arguments):
            return f"{name}({', '.join(map(text, arguments))})"
        case Cast(operand, kind):
            return f"CAST({text(operand)} AS {kind})"
        case And(arguments):
            return " AND ".join(map(inner, arguments))
        case Or(arguments):
            return " OR ".join(map(inner, arguments))
        case Not(IsNull(operand)):
            return f"{inner(operand)} IS NOT NULL"
        case Not(IsDistinct(left, right)):
            return f"{inner(left)} IS NOT DISTINCT FROM {inner(right)}"
        case Not(operand):
            return f"NOT {inner(operand)}"
        case IsNull(operand):
            return f"{inner(operand)} IS NULL"
        case IsDistinct(left, right):
            return f"{inner(left)} IS DISTINCT FROM {inner(right)}"
        case InList(operand, items):
            return f"{inner(operand)} IN ({', '.join(map(text, items))})"
        case Case(branches, default):
            whens = " ".join(f"WHEN {text(c)} THEN {text(r)}" for c, r in branches)
            return f"CASE {whens} ELSE {text(default)} END"
        case Exists():
            return "EXISTS (…)"
        case InSubquery(operand):
            return f"{inner(operand)} IN (…)"
        case ScalarSubquery():
            return "(…)"
        case _:
            assert_never(expression)


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"'\\x{value.hex()}'"
        case int() | float():
            return str(value)
        case _:
            return f"'{value}'"


def aggregate_text(call: AggregateCall, names: Sequence[str]) -> str:
    """`sum(DISTINCT x) FILTER (WHERE y)`."""
    argument = "*" if call.argument is None else expression_text(call.argument, names)
    text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{argument})"
    if call.filter is not None:
        text += f" FILTER (WHERE {expression_text(call.filter, names)})"
    return text


def sort_text(key: SortKey, names: Sequence[str]) -> str:
    """`x DESC NULLS FIRST`; the default place of NULLs is not said."""
    text = expression_text(key.expression, names) + (" DESC" if key.descending else "")
    if key.nulls_first != key.descending:
        text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return text


def window_text(call: WindowCall, names: Sequence[str]) -> str:
    """`rank() OVER (PARTITION BY … ORDER BY … ROWS …)`, ties left out."""
    arguments = ", ".join(expression_text(e, names) for e in call.arguments)
    if not call.arguments and call.function == "count":
        arguments = "*"
    parts = []
    if call.partition:
        parts.append("PARTITION BY " + ", ".join(expression_text(e, names) for e in call.partition))
    if call.order:
        parts.append("ORDER BY " + ", ".join(sort_text(key, names) for key in call.order))
    if (
        call.frame is not None
        and call.frame.mode == "rows"
        and (call.frame.start, call.frame.end) != (None,) * 2
    ):
        parts.append(f"ROWS {_bound(call.frame.start, 'PRECEDING')} TO {_bound(call.frame.end, 'FOLLOWING')}")
    return f"{call.function}({arguments}) OVER ({' '.join(parts)})"


def _bound(rows: int | None, side: str) -> str:
    return f"UNBOUNDED {side}" if rows is None else f"{rows:+d}"
