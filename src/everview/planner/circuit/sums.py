"""Aggregates that add up: what a row contributes to a group's sums, and the value over them.

All sums are of whole numbers or of DECIMALs, so adding and taking away leaves no trace. A sum of BIGINTs is
kept in two halves of 32 bits, which do not overflow before two thousand million rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from everview.language.expressions import And, Call, Case, Cast, Expression, IsNull, Literal, Not
from everview.language.functions import resolve
from everview.language.types import BIGINT, BOOLEAN, DOUBLE, Kind, Type, decimal_type
from everview.planner.circuit.weighted import ONE, ZERO, compare, minus, or_zero, times, zero

__all__ = ["Sums", "adding"]

_HALF = Literal(2**32, BIGINT)
_SAFE_DIGITS = 28
"""Ten digits of room: enough for 10^10 rows."""
_WEIGHT = decimal_type(10, 0)
_LOW_DIGITS = 19
_SPLIT_SCALE = 13
"""Beyond it the quotient of a long DECIMAL has no room for six more digits."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What a value with a weight contributes, and the result over the sums of that."""

    contributions: Callable[[Expression, Expression], tuple[Expression, ...]]
    result: Callable[[Sequence[Expression]], Expression]
    count: int


def adding(function: str, argument: Type, result: Type) -> Sums | None:
    """How an aggregate of a nullable column adds up; None when it does not."""
    match function, argument.kind:
        case "count", _:
            return Sums(lambda v, w: (_count(v, w),), lambda s: s[0], 1)
        case (("bool_and" | "bool_or"), _):
            value = _all if function == "bool_and" else _any
            return Sums(lambda v, w: (_count(v, w), _if(v, w)), lambda s: _unless_empty(s[0], value(s)), 2)
        case "sum", Kind.BIGINT:
            return Sums(_halves, lambda s: _unless_empty(s[0], Cast(_whole(s), BIGINT)), 3)
        case "avg", Kind.BIGINT:
            return Sums(_halves, lambda s: _unless_empty(s[0], _mean(Cast(_whole(s), DOUBLE), s[0])), 3)
        case (("sum" | "avg"), Kind.DECIMAL) if sum(argument.digits) <= _SAFE_DIGITS:
            return _of_decimals(function, argument, result)
        case (("sum" | "avg"), Kind.DECIMAL) if argument.digits[1] <= _SPLIT_SCALE:
            return _of_long_decimals(function, argument, result)
        case _:
            return None


def _count(value: Expression, weight: Expression) -> Expression:
    return _if(Not(IsNull(value)), weight)


def _if(condition: Expression, weight: Expression) -> Expression:
    return Case(((condition, weight),), ZERO)


def _halves(value: Expression, weight: Expression) -> tuple[Expression, ...]:
    high, low = (or_zero(times(Call(part, (value, _HALF), BIGINT), weight)) for part in ("/", "%"))
    return _count(value, weight), high, low


def _whole(sums: Sequence[Expression]) -> Expression:
    """The sum of both halves as a DECIMAL: it may be more than a BIGINT holds."""
    wide = Cast(sums[1], decimal_type(19, 0))
    high = Call("*", (wide, Literal(Decimal(2**32), decimal_type(10, 0))), decimal_type(29, 0))
    return Call("+", (high, Cast(sums[2], decimal_type(29, 0))), decimal_type(30, 0))


def _mean(total: Expression, count: Expression) -> Expression:
    return Call("/", (total, Cast(count, DOUBLE)), DOUBLE)


def _of_decimals(function: str, argument: Type, result: Type) -> Sums:
    scale = argument.digits[1]
    wide = decimal_type(38, scale)

    def contributions(value: Expression, weight: Expression) -> tuple[Expression, ...]:
        product = Call("*", (value, Cast(weight, _WEIGHT)), decimal_type(sum(argument.digits) + 10, scale))
        return _count(value, weight), or_zero(Cast(product, wide))

    return Sums(contributions, lambda s: _unless_empty(s[0], _decimal_value(function, s[1], s[0], result)), 2)


def _decimal_value(function: str, total: Expression, count: Expression, result: Type) -> Expression:
    return total if function == "sum" else Call("/", (total, Cast(count, decimal_type(19, 0))), result)


def _of_long_decimals(function: str, argument: Type, result: Type) -> Sums:
    """In two parts of 19 digits, so that a sum which passes 38 digits on the way is not lost."""
    scale = argument.digits[1]
    whole, wide = decimal_type(38, 0), decimal_type(38, scale)
    part = decimal_type(_LOW_DIGITS, scale)
    unit = Literal(Decimal(10 ** (_LOW_DIGITS - scale)), decimal_type(_LOW_DIGITS - scale + 1, 0))

    def rest(value: Expression) -> Expression:
        return Cast(_decimal("%", value, unit), part)

    def units(value: Expression) -> Expression:
        return Cast(_decimal("/", Cast(_decimal("-", value, rest(value)), wide), unit), decimal_type(19, 0))

    def contributions(value: Expression, weight: Expression) -> tuple[Expression, ...]:
        times_weight = Cast(weight, _WEIGHT)
        high = or_zero(Cast(_decimal("*", units(value), times_weight), whole))
        low = or_zero(Cast(_decimal("*", rest(value), times_weight), wide))
        return _count(value, weight), high, low

    def value(sums: Sequence[Expression]) -> Expression:
        count, high, low = sums
        high, low = Cast(_decimal("+", high, units(low)), whole), rest(low)
        # Both parts of one sign, so that neither leaves the 38 digits unless the sum does.
        none, one = Literal(Decimal(0), whole), Literal(Decimal(1), whole)
        over = And((compare(high, ">", none), compare(low, "<", zero(part))))
        under = And((compare(high, "<", none), compare(low, ">", zero(part))))
        back = Case(((over, one), (under, Cast(minus(ZERO, ONE), whole))), none)
        top = Cast(_decimal("*", Cast(_decimal("-", high, back), whole), unit), wide)
        bottom = _decimal("+", low, _decimal("*", back, unit))
        total = Cast(_decimal("+", top, Cast(bottom, wide)), wide)
        return _unless_empty(count, _decimal_value(function, total, count, result))

    return Sums(contributions, value, 3)


def _decimal(operator: str, left: Expression, right: Expression) -> Expression:
    """An operation on DECIMALs, with the type that the language gives it."""
    return Call(operator, (left, right), resolve(operator, (left.type, right.type))[1])


def _unless_empty(count: Expression, value: Expression) -> Expression:
    return Case(((compare(count, ">", ZERO), value),), Literal(None, value.type))


def _all(sums: Sequence[Expression]) -> Expression:
    return Call("=", (sums[0], sums[1]), BOOLEAN)


def _any(sums: Sequence[Expression]) -> Expression:
    return compare(sums[1], ">", ZERO)
