"""Functions over any one type: comparisons, coalesce, nullif, greatest, least, concat.

Stored forms compare as values do, so these are SQLite's own operators; only the treatment of NULL by
greatest and least differs.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.engines.sqlite.scalars.arithmetic import Implementation
from everview.engines.sqlite.scalars.fragments import Operand, Writer
from everview.language.expressions import Call
from everview.language.functions import COMPARISONS

__all__ = ["UNIFIED"]


def _compare(operator: str) -> Implementation:
    return lambda _writer, _call, operands: f"({operands[0].sql} {operator} {operands[1].sql})"


def _coalesce(_writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    if len(operands) == 1:
        return operands[0].sql
    return f"coalesce({', '.join(operand.sql for operand in operands)})"


def _nullif(_writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    return f"nullif({operands[0].sql}, {operands[1].sql})"


def _extreme(function: str) -> Implementation:
    """SQLite's max(a, b) is NULL if any argument is; so each NULL stands for another argument."""

    def implementation(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
        if len(operands) == 1:
            return operands[0].sql

        def body(*names: str) -> str:
            if len(names) == 2:
                return f"coalesce({function}({', '.join(names)}), {', '.join(names)})"
            filled = [f"coalesce({', '.join((name, *names))})" for name in names]
            return f"{function}({', '.join(filled)})"

        return writer.let(operands, body)

    return implementation


def _concat(_writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    return "(" + " || ".join(f"coalesce({operand.sql}, '')" for operand in operands) + ")"


UNIFIED: dict[str, Implementation] = {
    **{operator: _compare(operator) for operator in COMPARISONS},
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _extreme("max"),
    "least": _extreme("min"),
    "concat": _concat,
}
