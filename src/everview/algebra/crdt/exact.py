"""Exact: sums that do not depend on the order of their terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from everview.errors import DataError

Number = int | float | Decimal

DIGITS = 38
"""The digits of a DECIMAL, before and after the point."""

_KINDS = (int, float, Decimal)


@dataclass(frozen=True, slots=True)
class Exact:
    """Numbers of one kind (int, float or Decimal) as exact fractions, rounded once when read.

    Intuitively, floats are fractions too: added as such, no order of addition differs from another, and
    taking a term away again leaves no trace.
    """

    kind: type[Number]

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise DataError(f"of must be int, float or Decimal, not {self.kind!r}", value=self.kind)

    def enter(self, value: Any) -> Fraction:
        """Return `value` as a fraction; another kind, NaN, infinity and oversize are refused.

        An int fits every kind; a bool is no int.
        """
        kind = type(value)
        if kind is not self.kind and kind is not int:
            raise DataError(
                f"expected {self.kind.__name__}, not {kind.__name__} {value!r}: types do not mix",
                value=value,
                expected=self.kind.__name__,
            )
        if kind is not int and not math.isfinite(value):
            raise DataError(f"{value!r} cannot be added: it could not be taken away again", value=value)
        if kind is Decimal:
            _check_size(value)
        return Fraction(value)

    def leave(self, total: Fraction) -> Number:
        """Return an exact total as a number of this kind; only a float is rounded, to the nearest."""
        if self.kind is int:
            return total.numerator
        if self.kind is Decimal:
            return _finite_decimal(total)
        return nearest_float(total)

    def quotient(self, total: Fraction, count: int) -> float | Decimal:
        """Return total ÷ count, rounded once: a Decimal of 38 digits for Decimal, else a float."""
        if self.kind is Decimal:
            exact = total / count
            return Context(prec=DIGITS).divide(Decimal(exact.numerator), Decimal(exact.denominator))
        return nearest_float(total / count)


def nearest_float(fraction: Fraction) -> float:
    """Return the float nearest to a fraction; beyond the largest float that is infinity."""
    try:
        return float(fraction)
    except OverflowError:
        return math.inf if fraction > 0 else -math.inf


def _check_size(value: Decimal) -> None:
    _, digits, exponent = value.as_tuple()
    if len(digits) > DIGITS or not isinstance(exponent, int) or not -DIGITS <= exponent <= DIGITS:
        raise DataError(
            f"{value!r} is over {DIGITS} digits before or after the point", value=value, expected="DECIMAL"
        )


def _finite_decimal(total: Fraction) -> Decimal:
    """Return a fraction that is a sum of decimals as the decimal it is, without rounding."""
    scale = 0
    while total.denominator != 1:
        total *= 10
        scale += 1
    number = Decimal(total.numerator)
    return number.scaleb(-scale, Context(prec=max(len(number.as_tuple().digits), 1) + scale))
