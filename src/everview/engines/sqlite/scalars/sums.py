"""Exact sums and averages as SQLite aggregates, for what SQLite's own `sum` would round or refuse.

Each takes (value, weight), or the value alone for DISTINCT; NULL values are skipped.
"""

from __future__ import annotations

import functools
import math
import sqlite3
from collections.abc import Callable
from typing import Any

from everview.engines.sqlite.scalars.storage import NAN_TEXT, decode_long, encode_long
from everview.language.types import BIGINT_MAX, BIGINT_MIN, DECIMAL_DIGITS

__all__ = ["HALF", "average_name", "register"]

HALF = 32
"""A BIGINT is summed as its upper and its lower 32 bits, in two sums that cannot overflow."""

_UNIT = 1074
"""Every double is a whole multiple of 2^−1074."""

_SPLIT = float((1 << 27) + 1)
_SMALL_WEIGHT = 1 << 26
_TINY, _HUGE = 1e-250, 1e250

Failed = Callable[[str], None]


class _State:
    """What sqlite3 makes one of for each group."""

    def __init__(self, finish: Callable[[Any], Any], failed: Failed) -> None:
        self.total = 0
        self.count = 0
        self._finish = finish
        self._failed = failed

    def finalize(self) -> Any:
        if self.count == 0:
            return None
        try:
            return self._finish(self)
        except OverflowError as error:
            return self._failed(str(error))


class _Whole(_State):
    """The exact sum and the count of whole numbers, plain or as keys."""

    def step(self, value: int | str | None, weight: int = 1) -> None:
        if value is not None:
            self.total += (value if isinstance(value, int) else decode_long(value)) * weight
            self.count += weight


class _Doubles(_State):
    """The exact sum and the count of doubles.

    Terms are kept for `math.fsum`, which rounds once and is fast. A value of a greater weight is split
    into halves of 26 bits first, whose products with a small weight are exact (Veltkamp, Dekker); what
    cannot be split is summed in whole multiples of the smallest double.
    """

    def __init__(self, finish: Callable[[Any], Any], failed: Failed) -> None:
        super().__init__(finish, failed)
        self.values: list[float] = []
        self.special: list[float] = []

    def step(self, value: float | str | None, weight: int = 1) -> None:
        if value is None:
            return
        self.count += weight
        number = math.nan if isinstance(value, str) else value
        if not math.isfinite(number):
            self.special.append(number)
        elif weight == 1:
            self.values.append(number)
        elif 0 < weight < _SMALL_WEIGHT and _TINY < abs(number) < _HUGE:
            upper = number * _SPLIT
            upper -= upper - number
            self.values += (upper * weight, (number - upper) * weight)
        else:
            self.total += _multiple(number) * weight

    def sum(self) -> float:
        """The double nearest to the exact sum; OverflowError if there is none."""
        if self.special:
            return sum(self.special)
        if self.total == 0:
            try:
                return math.fsum(self.values)
            except OverflowError:
                pass  # a sum on the way was too large; the whole may fit
        exact = self.total + sum(map(_multiple, self.values))
        return exact / (1 << _UNIT)


def _multiple(number: float) -> int:
    numerator, denominator = number.as_integer_ratio()
    return numerator << (_UNIT + 1 - denominator.bit_length())


def _stored(number: float) -> float | str:
    return number + 0.0 if number == number else NAN_TEXT  # noqa: PLR0124  (NaN)


def _bigint(total: int) -> int:
    if not BIGINT_MIN <= total <= BIGINT_MAX:
        raise OverflowError("sum does not fit BIGINT")
    return total


def _decimal(total: int) -> str:
    if abs(total) >= 10**DECIMAL_DIGITS:
        raise OverflowError("sum does not fit DECIMAL(38)")
    return encode_long(total, DECIMAL_DIGITS)


def _decimal_average(total: int, count: int, shift: int) -> str:
    divisor = count * 10 ** max(-shift, 0)
    whole, rest = divmod(abs(total) * 10 ** max(shift, 0), divisor)
    rounded = whole + (2 * rest >= divisor)
    return _decimal(-rounded if total < 0 else rounded)


def average_name(shift: int) -> str:
    """The aggregate for averages with `shift` more digits after the point than the values have.

    Six as a rule; fewer, and at 38 digits one less, where the result's scale was cut to 37.
    """
    return f"avg_decimal_{shift}" if shift >= 0 else f"avg_decimal_less_{-shift}"


def _finish_average(shift: int, state: _Whole) -> str:
    return _decimal_average(state.total, state.count, shift)


def _halves(upper: int, lower: int) -> int:
    return (upper << HALF) + lower


_FINISHERS: dict[str, tuple[type[_Whole | _Doubles], Callable[[Any], Any]]] = {
    "sum_bigint": (_Whole, lambda state: _bigint(state.total)),
    "sum_decimal": (_Whole, lambda state: _decimal(state.total)),
    "sum_double": (_Doubles, lambda state: _stored(state.sum())),
    "avg_bigint": (_Whole, lambda state: float(state.total) / state.count),
    "avg_double": (_Doubles, lambda state: _stored(state.sum() / state.count)),
    **{average_name(shift): (_Whole, functools.partial(_finish_average, shift)) for shift in range(-1, 7)},
}

_OF_HALVES: dict[str, Callable[..., Any]] = {
    "halves_sum_decimal": lambda upper, lower: _decimal(_halves(upper, lower)),
    "halves_avg_bigint": lambda upper, lower, count: float(_halves(upper, lower)) / count,
    "halves_avg_decimal": lambda upper, lower, count, shift: _decimal_average(
        _halves(upper, lower), count, shift
    ),
}


def register(connection: sqlite3.Connection, fail: Failed, refuse: Failed) -> None:
    """Put the aggregates on a connection, each with a `_strict` twin that raises when it fails."""
    for suffix, failed in (("", fail), ("_strict", refuse)):
        for name, (state, finish) in _FINISHERS.items():
            made = functools.partial(state, finish, failed)  # a class each would take longer than the rest
            connection.create_aggregate(f"ev_{name}{suffix}", -1, made)
        for name, function in _OF_HALVES.items():
            connection.create_function(f"ev_{name}{suffix}", -1, _scalar(function, failed))


def _scalar(function: Callable[..., Any], failed: Failed) -> Callable[..., Any]:
    def scalar(*arguments: Any) -> Any:
        if None in arguments:
            return None
        try:
            return function(*arguments)
        except OverflowError as error:
            return failed(str(error))

    return scalar
