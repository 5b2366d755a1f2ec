"""The parts of a node as text for people.

An expression is printed as `language.printing` does, but each column under the name it has in the input
of the node: a name inside an expression may be out of date, and the two sides of a join share names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.language import printing
from everview.language.aggregates import AggregateCall, SortKey, WindowCall
from everview.language.expressions import Expression, substitute

__all__ = ["aggregate_text", "expression_text", "sort_text", "window_text"]


def expression_text(expression: Expression, names: Sequence[str]) -> str:
    """The expression over columns of these names."""
    return printing.expression_text(substitute(expression, lambda c: replace(c, name=names[c.index])))


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
