"""Arithmetic on DECIMAL.

Short operands with a short result are scaled integers, and their arithmetic is plain SQL: a result type
of at most 18 digits cannot overflow, because the types of results are wide enough. Everything that
touches a long DECIMAL goes to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.engines.sqlite.scalars.arithmetic import Implementation
from everview.engines.sqlite.scalars.fragments import Operand, Writer
from everview.engines.sqlite.scalars.literals import text_literal
from everview.engines.sqlite.scalars.storage import SHORT_DIGITS, encode_long, is_long
from everview.language.expressions import Call
from everview.language.types import DECIMAL_DIGITS, Type, decimal_type

__all__ = ["DECIMALS", "fitted_sql", "half_away_sql", "key_sql", "rescaled_sql"]


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


def key_sql(number: str, digits: int, *, shift: int = 0, otherwise: str | None = None) -> str:
    """The key of `digits` digits for a whole number times 10^shift; NULL for NULL.

    At most 18 of the digits vary here, the others are zeros or nines; what has more is `otherwise`.
    """
    varying = min(digits - shift, SHORT_DIGITS)
    before, most = digits - shift - varying, 10**varying - 1
    positive = f"printf('1{'0' * before}%0{varying}d{'0' * shift}', {number})"
    negative = f"printf('0{'9' * before}%0{varying}d{'9' * shift}', {most} + {number})"
    rest = f" WHEN {number} IS NOT NULL THEN {otherwise}" if otherwise else ""
    return (
        f"CASE WHEN {number} BETWEEN 0 AND {most} THEN {positive} "
        f"WHEN {number} BETWEEN -{most} AND -1 THEN {negative}{rest} END"
    )


def _plain(call: Call, operands: Sequence[Operand]) -> bool:
    """Whether everything is a scaled integer."""
    types = [operand.type for operand in operands if operand.type.precision is not None]
    return not any(map(is_long, (*types, call.type)))


def _arithmetic(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    """+, − and ×: of integers in SQL, of anything longer in Python.

    A long result of integers is made into a key if SQLite's 64 bits and the key's 18 digits hold it.
    """
    if _plain(call, operands):
        return f"({_whole_result(call, operands, [operand.sql for operand in operands])})"
    short = [_as_integer(operand) for operand in operands]
    integers = [operand for operand in short if operand is not None]
    if len(integers) < len(operands):
        return _python(writer, call, operands)

    def body(*names: str) -> str:
        named = [Operand(name, old.type) for name, old in zip(names, integers, strict=True)]
        result = Operand(_whole_result(call, named, names), call.type)
        rarely = _python(writer, call, named)

        def key(a: str) -> str:
            # Beyond 64 bits SQLite goes on with a double, and a difference of two may look small again.
            short = key_sql(a, sum(call.type.digits), otherwise=rarely)
            return f"CASE WHEN typeof({a}) = 'real' THEN {rarely} ELSE {short} END"

        return writer.let([result], key)

    return writer.let(integers, body)


def _as_integer(operand: Operand) -> Operand | None:
    """The operand as the SQL of an integer, with a type that has its scale."""
    if operand.integer is not None:
        sql, scale = operand.integer
        return Operand(sql, decimal_type(DECIMAL_DIGITS, scale))
    return None if is_long(operand.type) else operand


def _whole_result(call: Call, operands: Sequence[Operand], names: Sequence[str]) -> str:
    scale = call.type.digits[1]
    scales = [operand.type.digits[1] for operand in operands]
    if call.function == "*":
        return rescaled_sql(f"{names[0]} * {names[1]}", scale - sum(scales))
    left, right = (rescaled_sql(name, scale - own) for name, own in zip(names, scales, strict=True))
    return f"{left} {call.function} {right}"


def _python(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    """+, −, × and ÷ on scaled integers of any size, which Python has."""
    left, right = (_as_integer(operand) or operand for operand in operands)
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
    "+": _arithmetic,
    "-": _arithmetic,
    "*": _arithmetic,
    "/": _python,
    "%": _remainder,
    "neg": _single(lambda a: f"-{a}"),
    "abs": _single(lambda a: f"abs({a})"),
    "sign": _sign,
    "round": _round,
    "floor": _whole("<", "-"),
    "ceil": _whole(">", "+"),
}
