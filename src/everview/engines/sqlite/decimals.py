"""Arithmetic on DECIMAL.

Short operands with a short result are scaled integers, and their arithmetic is plain SQL: a result type
of at most 18 digits cannot overflow, because the types of results are wide enough. Everything that
touches a long DECIMAL goes to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.engines.sqlite.arithmetic import Implementation
from everview.engines.sqlite.fragments import Operand, Writer
from everview.engines.sqlite.literals import text_literal
from everview.engines.sqlite.storage import SHORT_DIGITS, encode_long, is_long
from everview.language.expressions import Call
from everview.language.types import Type

__all__ = ["DECIMALS", "fitted_sql", "half_away_sql", "rescaled_sql"]


def rescaled_sql(sql: str, by: int) -> str:
    """A scaled integer with `by` more digits after the point."""
    return f"{sql} * {10**by}" if by else sql


def half_away_sql(number: str, digits: int) -> str:
    """A whole number without its last digits (18 at most), rounded half away from zero."""
    if digits == 0:
        return number
    unit = 10**digits
    half = unit // 2
    return f"CASE WHEN {number} < 0 THEN ({number} - {half}) / {unit} ELSE ({number} + {half}) / {unit} END"


def fitted_sql(writer: Writer, number: str, target: Type, what: str) -> str:
    """A scaled integer if it has no more digits than `target`, else a failure."""
    most = 10 ** sum(target.digits) - 1
    failure = writer.fail(f"{what}: the result does not fit {target}")
    return f"CASE WHEN {number} NOT BETWEEN -{most} AND {most} THEN {failure} ELSE {number} END"


def _plain(call: Call, operands: Sequence[Operand]) -> bool:
    """Whether everything is a scaled integer."""
    types = [operand.type for operand in operands if operand.type.precision is not None]
    return not any(map(is_long, (*types, call.type)))


def _aligned(operands: Sequence[Operand]) -> list[str]:
    scale = max(operand.type.digits[1] for operand in operands)
    return [rescaled_sql(operand.sql, scale - operand.type.digits[1]) for operand in operands]


def _aligned_or_python(operator: str) -> Implementation:
    def implementation(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
        if _plain(call, operands):
            left, right = _aligned(operands)
            return f"({left} {operator} {right})"
        return _python(writer, call, operands)

    return implementation


def _product(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    if _plain(call, operands):
        return f"({operands[0].sql} * {operands[1].sql})"
    return _python(writer, call, operands)


def _python(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    """+, −, × and ÷ on scaled integers of any size, which Python has."""
    left, right = operands
    left_scale, right_scale = left.type.digits[1], right.type.digits[1]
    whole, scale = call.type.digits
    name = {"+": "sum", "-": "difference", "*": "product", "/": "quotient"}[call.function]
    suffix = "_strict" if writer.strict else ""
    fixed = f"{left_scale}, {right_scale}, {whole + scale}, {scale}"
    return f"ev_decimal_{name}{suffix}({left.sql}, {right.sql}, {fixed})"


def _remainder(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    if not _plain(call, operands):
        return writer.call(call, operands)
    left_scale, right_scale = (operand.type.digits[1] for operand in operands)
    scale = max(left_scale, right_scale)

    def body(left: str, right: str) -> str:
        rest = f"({rescaled_sql(left, scale - left_scale)}) % ({rescaled_sql(right, scale - right_scale)})"
        zero = f"{left} IS NOT NULL AND {right} = 0"
        return f"CASE WHEN {zero} THEN {writer.fail('division by zero')} ELSE {rest} END"

    return writer.let(operands, body)


def _single(body: Callable[[str], str]) -> Implementation:
    def implementation(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
        return f"({body(operands[0].sql)})" if _plain(call, operands) else writer.call(call, operands)

    return implementation


def _sign(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    kind = operands[0].type
    zero = text_literal(encode_long(0, sum(kind.digits))) if is_long(kind) else "0"
    return writer.let(operands, lambda a: f"({a} > {zero}) - ({a} < {zero})")


def _round(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    """To n digits (none), which may be negative: n digits before the point become zeros."""
    value = operands[0]
    scale = value.type.digits[1]
    digits = operands[1].constant if len(operands) > 1 else 0
    if digits is None or not _plain(call, operands):
        return writer.call(call, operands)
    kept = min(digits, scale)
    dropped, shift = scale - kept, call.type.digits[1] - kept
    if dropped > SHORT_DIGITS:
        return f"({value.sql} * 0)"
    most = (10 ** sum(value.type.digits) - 1 + 10**dropped // 2) // 10**dropped * 10**shift
    if most >= 10**SHORT_DIGITS:
        return writer.call(call, operands)

    def rounded(a: str) -> str:
        return rescaled_sql(f"({half_away_sql(a, dropped)})", shift)

    written = writer.let([value], rounded)
    if most < 10 ** sum(call.type.digits):
        return written
    return writer.let([Operand(written, call.type)], lambda a: fitted_sql(writer, a, call.type, "round"))


def _whole(comparison: str, step: str) -> Implementation:
    def implementation(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
        if not _plain(call, operands):
            return writer.call(call, operands)
        unit = 10 ** operands[0].type.digits[1]
        return writer.let(operands, lambda a: f"{a} / {unit} {step} ({a} % {unit} {comparison} 0)")

    return implementation


DECIMALS: dict[str, Implementation] = {
    "+": _aligned_or_python("+"),
    "-": _aligned_or_python("-"),
    "*": _product,
    "/": _python,
    "%": _remainder,
    "neg": _single(lambda a: f"-{a}"),
    "abs": _single(lambda a: f"abs({a})"),
    "sign": _sign,
    "round": _round,
    "floor": _whole("<", "-"),
    "ceil": _whole(">", "+"),
}
