"""Every function of `language.functions`, on Python values.

An implementation takes the call (for its types) and the values of its arguments, none of them NULL for
a strict function; it raises ArithmeticError or ValueError when the call fails.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from everview.algebra.sketch_text import distinct, mark, percentile, step
from everview.language.expressions import Call
from everview.language.functions import TRUNCATIONS
from everview.language.order import order_key
from everview.language.types import BIGINT_MAX, BIGINT_MIN, Kind
from everview.language.values import EXACT, canonical_double, fit_decimal

__all__ = ["IMPLEMENTED", "call_function"]

Implementation = Callable[[Call, Sequence[Any]], Any]


def call_function(call: Call, values: Sequence[Any]) -> Any:
    """The result of a call, in the one form of its type."""
    result = IMPLEMENTED[call.function](call, values)
    match call.type.kind:
        case Kind.BIGINT if result is not None and not BIGINT_MIN <= result <= BIGINT_MAX:
            raise OverflowError(f"{call.function}: the result does not fit BIGINT")
        case Kind.DECIMAL if result is not None:
            return fit_decimal(result, call.type, rounded=True)
        case Kind.DOUBLE if result is not None:
            if math.isinf(result) and all(isinstance(v, float) and math.isfinite(v) for v in values):
                raise OverflowError(f"{call.function}: the result does not fit DOUBLE")
            return canonical_double(result)
        case _:
            return result


def _plus(call: Call, values: Sequence[Any]) -> Any:
    left, right = values
    if isinstance(left, dt.date):
        return left + dt.timedelta(days=right)
    if isinstance(right, dt.date):
        return right + dt.timedelta(days=left)
    return EXACT.add(left, right) if call.type.kind is Kind.DECIMAL else left + right


def _minus(call: Call, values: Sequence[Any]) -> Any:
    left, right = values
    if isinstance(right, dt.date):
        return (left - right).days
    if isinstance(left, dt.date):
        return left - dt.timedelta(days=right)
    return EXACT.subtract(left, right) if call.type.kind is Kind.DECIMAL else left - right


def _times(call: Call, values: Sequence[Any]) -> Any:
    left, right = values
    return EXACT.multiply(left, right) if call.type.kind is Kind.DECIMAL else left * right


def _divide(call: Call, values: Sequence[Any]) -> Any:
    left, right = values
    if right == 0:
        if math.isnan(left):
            return left
        raise ZeroDivisionError("division by zero")
    match call.type.kind:
        case Kind.BIGINT:
            quotient = abs(left) // abs(right)
            return quotient if (left < 0) == (right < 0) else -quotient
        case Kind.DECIMAL:
            return _exact_quotient(left, right, call.type.digits[1])
        case _:
            return left / right


def _exact_quotient(left: decimal.Decimal, right: decimal.Decimal, scale: int) -> decimal.Decimal:
    """Left / right to `scale` digits, rounded half away from zero once."""
    numerator, denominator = left.as_integer_ratio(), right.as_integer_ratio()
    top = numerator[0] * denominator[1] * 10**scale
    bottom = numerator[1] * denominator[0]
    whole, rest = divmod(abs(top), abs(bottom))
    rounded = whole + (2 * rest >= abs(bottom))
    signed = rounded if (top < 0) == (bottom < 0) else -rounded
    return decimal.Decimal(signed).scaleb(-scale, EXACT)


def _remainder(call: Call, values: Sequence[Any]) -> Any:
    left, right = values
    if right == 0:
        raise ZeroDivisionError("division by zero")
    if call.type.kind is Kind.DECIMAL:
        return EXACT.remainder(left, right)
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _negate(_call: Call, values: Sequence[Any]) -> Any:
    return EXACT.minus(values[0]) if isinstance(values[0], decimal.Decimal) else -values[0]


def _sign(call: Call, values: Sequence[Any]) -> Any:
    (value,) = values
    sign = (value > 0) - (value < 0)  # 0 for NaN, as in PostgreSQL
    return decimal.Decimal(sign) if call.type.kind is Kind.DECIMAL else float(sign)


def _round(_call: Call, values: Sequence[Any]) -> Any:
    value = values[0]
    if isinstance(value, float):
        return float(round(value)) if math.isfinite(value) else value
    digits = values[1] if len(values) > 1 else 0
    if digits <= -100:
        return decimal.Decimal(0)
    return EXACT.quantize(value, decimal.Decimal((0, (1,), -min(digits, 100))))


def _whole(rounding: str, double: Callable[[float], int]) -> Implementation:
    def implementation(_call: Call, values: Sequence[Any]) -> Any:
        (value,) = values
        if isinstance(value, decimal.Decimal):
            return value.to_integral_value(rounding)
        return float(double(value)) if math.isfinite(value) else value

    return implementation


def _sqrt(_call: Call, values: Sequence[Any]) -> Any:
    if values[0] < 0:
        raise ValueError("the square root of a negative number")
    return math.sqrt(values[0])


def _power(_call: Call, values: Sequence[Any]) -> Any:
    base, exponent = values
    if base == 0 and exponent < 0:
        raise ZeroDivisionError("zero to a negative power")
    if base < 0 and math.isfinite(base) and math.isfinite(exponent) and exponent != math.floor(exponent):
        raise ValueError("a negative number to a broken power")
    return math.pow(base, exponent)


def _compare(decide: Callable[[Any, Any], bool]) -> Implementation:
    return lambda _call, values: decide(order_key(values[0]), order_key(values[1]))


def _coalesce(_call: Call, values: Sequence[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _nullif(_call: Call, values: Sequence[Any]) -> Any:
    left, right = values
    return None if left is not None and order_key(left) == order_key(right) else left


def _greatest(_call: Call, values: Sequence[Any]) -> Any:
    return max((value for value in values if value is not None), key=order_key, default=None)


def _least(_call: Call, values: Sequence[Any]) -> Any:
    return min((value for value in values if value is not None), key=order_key, default=None)


_UPPER = {ord(letter): letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}
_LOWER = {ord(letter.upper()): letter for letter in "abcdefghijklmnopqrstuvwxyz"}


def _like(call: Call, values: Sequence[Any]) -> bool:
    text, pattern, escape = values
    if call.function == "ilike":
        text, pattern, escape = (part.translate(_LOWER) for part in (text, pattern, escape))
    expression, index = "", 0
    while index < len(pattern):
        character = pattern[index]
        if character == escape:
            index += 1
            if index == len(pattern):
                raise ValueError("LIKE pattern must not end with the escape character")
            expression += re.escape(pattern[index])
        else:
            expression += {"%": ".*", "_": "."}.get(character, re.escape(character))
        index += 1
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _trim(left: bool, right: bool) -> Implementation:  # noqa: FBT001
    def implementation(_call: Call, values: Sequence[Any]) -> str:
        text, characters = values[0], values[1] if len(values) > 1 else " "
        if not characters:
            return str(text)
        text = text.lstrip(characters) if left else text
        return str(text.rstrip(characters) if right else text)

    return implementation


def _substr(_call: Call, values: Sequence[Any]) -> str:
    text, start = values[0], values[1]
    end = len(text) + 1
    if len(values) > 2:
        if values[2] < 0:
            raise ValueError("negative substring length not allowed")
        end = start + values[2]
    return str(text[max(start, 1) - 1 : max(end - 1, 0)])


def _replace(_call: Call, values: Sequence[Any]) -> str:
    text, part, by = values
    return str(text.replace(part, by) if part else text)


def _extract(field: str) -> Implementation:
    def implementation(_call: Call, values: Sequence[Any]) -> Any:
        (when,) = values
        match field:
            case "quarter":
                return (when.month + 2) // 3
            case "dow":
                return when.isoweekday() % 7
            case "isodow":
                return when.isoweekday()
            case "doy":
                return when.timetuple().tm_yday
            case "second":
                return decimal.Decimal(when.second * 1_000_000 + when.microsecond).scaleb(-6, EXACT)
            case "epoch":
                since = when - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
                return decimal.Decimal(since // dt.timedelta(microseconds=1)).scaleb(-6, EXACT)
            case _:
                return getattr(when, field)

    return implementation


def _tumble(_call: Call, values: Sequence[Any]) -> dt.datetime:
    size: int = values[1]
    if size <= 0:
        raise OverflowError("a window is longer than nothing")
    epoch, step = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(microseconds=1)
    when: dt.datetime = values[0]
    return epoch + (when - epoch) // step // size * size * step


def _date_trunc(unit: str) -> Implementation:
    def implementation(_call: Call, values: Sequence[Any]) -> dt.datetime:
        when: dt.datetime = values[0].replace(microsecond=0)
        smaller = {"minute": ("second",), "hour": ("second", "minute")}
        if unit == "second":
            return when
        cleared = dict.fromkeys(smaller.get(unit, ("second", "minute", "hour")), 0)
        when = when.replace(**cleared)  # type: ignore[arg-type]  # hour, minute and second take ints
        match unit:
            case "week":
                return when - dt.timedelta(days=when.weekday())
            case "month":
                return when.replace(day=1)
            case "quarter":
                return when.replace(day=1, month=(when.month - 1) // 3 * 3 + 1)
            case "year":
                return when.replace(day=1, month=1)
            case _:
                return when

    return implementation


IMPLEMENTED: dict[str, Implementation] = {
    "+": _plus,
    "-": _minus,
    "*": _times,
    "/": _divide,
    "%": _remainder,
    "neg": _negate,
    "abs": lambda _call, values: values[0].copy_abs() if _is_decimal(values[0]) else abs(values[0]),
    "sign": _sign,
    "round": _round,
    "floor": _whole(decimal.ROUND_FLOOR, math.floor),
    "ceil": _whole(decimal.ROUND_CEILING, math.ceil),
    "sqrt": _sqrt,
    "power": _power,
    "=": _compare(lambda left, right: left == right),
    "<>": _compare(lambda left, right: left != right),
    "<": _compare(lambda left, right: left < right),
    "<=": _compare(lambda left, right: left <= right),
    ">": _compare(lambda left, right: left > right),
    ">=": _compare(lambda left, right: left >= right),
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _greatest,
    "least": _least,
    "||": lambda _call, values: values[0] + values[1],
    "like": _like,
    "ilike": _like,
    "length": lambda _call, values: len(values[0]),
    "lower": lambda _call, values: values[0].translate(_LOWER),
    "upper": lambda _call, values: values[0].translate(_UPPER),
    "btrim": _trim(left=True, right=True),
    "ltrim": _trim(left=True, right=False),
    "rtrim": _trim(left=False, right=True),
    "substr": _substr,
    "replace": _replace,
    "strpos": lambda _call, values: values[0].find(values[1]) + 1,
    "left": lambda _call, values: values[0][: values[1]],
    "right": lambda _call, values: values[0][-values[1] :] if values[1] else "",
    "starts_with": lambda _call, values: values[0].startswith(values[1]),
    "concat": lambda _call, values: "".join(value for value in values if value is not None),
    "tumble": _tumble,
    "add_microseconds": lambda _call, values: values[0] + dt.timedelta(microseconds=values[1]),
    **{
        f"extract_{field}": _extract(field)
        for field in ("year", "quarter", "month", "day", "dow", "isodow", "doy", "hour", "minute", "second")
    },
    "extract_epoch": _extract("epoch"),
    **{f"date_trunc_{unit}": _date_trunc(unit) for unit in TRUNCATIONS},
    "sketch_mark": lambda _call, values: mark(values[0]),
    "sketch_step": lambda _call, values: step(values[0]),
    "sketch_distinct": lambda _call, values: distinct(values[0]),
    "sketch_percentile": lambda _call, values: percentile(*values),
}


def _is_decimal(value: Any) -> bool:
    return isinstance(value, decimal.Decimal)
