"""Arithmetic on BIGINT and DOUBLE.

SQLite turns an overflow of integers into REAL, in silence: `typeof` finds it. NaN is stored as text,
which SQLite's arithmetic takes for 0, and a result that would be NaN becomes NULL: so plain SQL serves
finite operands with a finite result, and whatever else there is goes to the reference's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.engines.sqlite.fragments import Operand, Writer
from everview.language.expressions import Call
from everview.language.types import BIGINT_MIN

__all__ = ["BIGINTS", "DOUBLES", "Implementation", "nearest_even_sql"]

Implementation = Callable[[Writer, Call, Sequence[Operand]], str]

_LEAST = f"({BIGINT_MIN})"
_INFINITY = "9e999"
_WHOLE = f"{1 << 52}.0"
"""From here on every double is a whole number."""


def _checked(operator: str) -> Implementation:
    def implementation(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
        overflow = writer.fail(f"{operator}: the result does not fit BIGINT")

        def body(left: str, right: str) -> str:
            result = f"{left} {operator} {right}"
            return f"CASE typeof({result}) WHEN 'real' THEN {overflow} ELSE {result} END"

        return writer.let(operands, body)

    return implementation


def _divide(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    divisor = operands[1].constant
    if divisor is not None and divisor not in (0, -1):
        return f"({operands[0].sql} / {operands[1].sql})"
    return writer.let(
        operands,
        lambda left, right: (
            f"CASE WHEN {right} > 0 OR {right} < -1 THEN {left} / {right} "
            f"WHEN {left} IS NULL OR {right} IS NULL THEN NULL "
            f"WHEN {right} = 0 THEN {writer.fail('division by zero')} "
            f"WHEN {left} = {_LEAST} THEN {writer.fail('/: the result does not fit BIGINT')} "
            f"ELSE -{left} END"
        ),
    )


def _remainder(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    if operands[1].constant:
        return f"({operands[0].sql} % {operands[1].sql})"
    return writer.let(
        operands,
        lambda left, right: (
            f"CASE WHEN {right} <> 0 THEN {left} % {right} "
            f"WHEN {left} IS NOT NULL AND {right} = 0 THEN {writer.fail('division by zero')} END"
        ),
    )


def _negate(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    overflow = writer.fail("neg: the result does not fit BIGINT")
    return writer.let(operands, lambda a: f"CASE {a} WHEN {_LEAST} THEN {overflow} ELSE -{a} END")


def _absolute(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    overflow = writer.fail("abs: the result does not fit BIGINT")
    return writer.let(
        operands, lambda a: f"CASE WHEN {a} = {_LEAST} THEN {overflow} WHEN {a} < 0 THEN -{a} ELSE {a} END"
    )


BIGINTS: dict[str, Implementation] = {
    "+": _checked("+"),
    "-": _checked("-"),
    "*": _checked("*"),
    "/": _divide,
    "%": _remainder,
    "neg": _negate,
    "abs": _absolute,
}


def _finite(operator: str) -> Implementation:
    """A sum, difference, product or quotient; adding 0.0 to it turns −0.0 into 0.0.

    Only the greatest side is compared for the operands: with −Infinity the result is not finite either,
    but for a quotient by it.
    """

    def implementation(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
        def body(left: str, right: str) -> str:
            names = (left, right)
            result = f"{left} {operator} {right}"
            inside = [f"{name} < {_INFINITY}" for name in names]
            slow = writer.call(
                call, [Operand(name, old.type) for name, old in zip(names, operands, strict=True)]
            )
            known = " AND ".join([*inside, f"abs({result}) < {_INFINITY}"])
            present = " AND ".join(f"{name} IS NOT NULL" for name in names)
            return f"CASE WHEN {known} THEN {result} + 0.0 WHEN {present} THEN {slow} END"

        return writer.let(operands, body)

    return implementation


def _unless_nan(body: Callable[[str], str]) -> Implementation:
    """A function that keeps NaN (text, so greater than Infinity) and NULL."""
    return lambda writer, _call, operands: writer.let(
        operands, lambda a: f"CASE WHEN {a} <= {_INFINITY} THEN {body(a)} ELSE {a} END"
    )


def nearest_even_sql(number: str) -> str:
    """The nearest whole number, half to even, of a number below 2^52.

    Adding and taking away 2^52 leaves no room for a fraction, so the addition itself rounds.
    """
    return (
        f"CASE WHEN {number} < 0.0 THEN ({number} - {_WHOLE}) + {_WHOLE} "
        f"ELSE ({number} + {_WHOLE}) - {_WHOLE} END"
    )


def _if_small(body: Callable[[str], str]) -> Implementation:
    """A function that changes only numbers with a fraction."""
    return lambda writer, _call, operands: writer.let(
        operands,
        lambda a: f"CASE WHEN {a} > -{_WHOLE} AND {a} < {_WHOLE} THEN {body(a)} ELSE {a} END",
    )


def _by_reference(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    return writer.call(call, operands)


DOUBLES: dict[str, Implementation] = {
    "+": _finite("+"),
    "-": _finite("-"),
    "*": _finite("*"),
    "/": _finite("/"),
    "neg": _unless_nan(lambda a: f"0.0 - {a}"),
    "abs": _unless_nan(lambda a: f"abs({a})"),
    "sign": _unless_nan(lambda a: f"({a} > 0.0) - ({a} < 0.0) + 0.0"),
    "round": _if_small(nearest_even_sql),
    "floor": _if_small(lambda a: f"CAST({a} AS INTEGER) - ({a} < CAST({a} AS INTEGER)) + 0.0"),
    "ceil": _if_small(lambda a: f"CAST({a} AS INTEGER) + ({a} > CAST({a} AS INTEGER)) + 0.0"),
    "sqrt": _by_reference,
    "power": _by_reference,
}
