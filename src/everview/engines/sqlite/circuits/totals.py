"""Exact sums as SQLite functions: of doubles and decimals, by change and over window frames.

The state of a sum is an integer in units of the smallest step of its type, so adding and taking away
leaves no trace and no order differs from another. Infinities and NaNs are counted beside it. A state is
text: the sum in hexadecimal, then the three counts where any is not 0.
"""

from __future__ import annotations

import functools
import math
import sqlite3
from collections.abc import Callable
from typing import Any

from everview.algebra.exact_text import UNIT, ExactSum
from everview.engines.sqlite.scalars.storage import decode_long, encode_long

_DIGITS = 38


class Total:
    """A sum under way: `finite` in units, and how many +∞, −∞ and NaN there are."""

    __slots__ = ("finite", "minus", "nans", "plus")

    def __init__(self, state: str = "0") -> None:
        finite, *special = state.split(",")
        self.finite = int(finite, 16)
        self.plus, self.minus, self.nans = map(int, special) if special else (0, 0, 0)

    def add(self, value: float | str, weight: int) -> None:
        """Add a stored double `weight` times."""
        if isinstance(value, str):
            self.nans += weight
        elif value in (math.inf, -math.inf):
            if value > 0:
                self.plus += weight
            else:
                self.minus += weight
        else:
            numerator, denominator = float(value).as_integer_ratio()
            self.finite += weight * (numerator << (UNIT - denominator.bit_length() + 1))

    def join(self, other: Total) -> None:
        """Add another sum."""
        self.finite += other.finite
        self.plus += other.plus
        self.minus += other.minus
        self.nans += other.nans

    def state(self) -> str:
        """Return the sum as text."""
        special = f",{self.plus},{self.minus},{self.nans}" if self.plus or self.minus or self.nans else ""
        return f"{self.finite:x}{special}"

    def double(self) -> float | str:
        """Return the stored double nearest to the sum; a finite sum beyond the largest overflows."""
        if self.nans or (self.plus and self.minus):
            return "NaN"
        if self.plus or self.minus:
            return math.inf if self.plus else -math.inf
        return self.finite / (1 << UNIT)


class _Sum:
    """An aggregate function of (value, weight) that gives the state of the sum."""

    def __init__(self) -> None:
        self._total = Total()

    def finalize(self) -> str:
        return self._total.state()


class _DoubleSum(_Sum):
    def step(self, value: float | str | None, weight: int) -> None:
        if value is not None and weight:
            self._total.add(value, weight)


class _ScaledSum(_Sum):
    """Of integers and of decimals, short or long: their units."""

    def step(self, value: int | str | None, weight: int) -> None:
        if value is not None and weight:
            self._total.finite += weight * _units(value)


class _TextSum(_Sum):
    """Of exact sums that came from elsewhere."""

    def step(self, value: str | None, weight: int) -> None:
        if value is not None and weight:
            found = ExactSum.read(value)
            self._total.finite += weight * found.units
            self._total.plus += weight * found.plus
            self._total.minus += weight * found.minus
            self._total.nans += weight * found.nans


def _as_text(state: str) -> str:
    total = Total(state)
    return ExactSum(total.finite, total.plus, total.minus, total.nans).text()


def _units(value: int | str) -> int:
    return decode_long(value) if isinstance(value, str) else value


def _added(old: str, change: str) -> str:
    total = Total(old)
    total.join(Total(change))
    return total.state()


Fail = Callable[[str], Any]


class Finish:
    """How a state becomes a value; `fail` is told of sums that do not fit, and gives what to show."""

    def __init__(self, fail: Fail) -> None:
        self._fail = fail

    def bigint(self, total: Total) -> int | None:
        """Return a BIGINT, or fail."""
        if -(2**63) <= total.finite < 2**63:
            return total.finite
        self._fail("bigint out of range")
        return None

    def decimal(self, total: Total) -> str | None:
        """Return a long DECIMAL, or fail."""
        if abs(total.finite) < 10**_DIGITS:
            return encode_long(total.finite, _DIGITS)
        self._fail("numeric field overflow")
        return None

    def double(self, total: Total) -> float | str | None:
        """Return a DOUBLE, or fail."""
        try:
            return total.double()
        except OverflowError:
            self._fail("double precision out of range")
            return None

    def mean_double(self, total: Total, count: int) -> float | str | None:
        """Return the DOUBLE average of doubles: the rounded sum divided."""
        found = self.double(total)
        return found / count + 0.0 if isinstance(found, float) else found

    def mean_bigint(self, total: Total, count: int) -> float:
        """Return the DOUBLE average of integers: the sum rounded to a double, divided."""
        return float(total.finite) / count + 0.0

    def mean_decimal(self, total: Total, count: int, places: int) -> str | None:
        """Return the DECIMAL average with `places` more digits, rounded half away from zero."""
        scaled = abs(total.finite) * 10**places
        quotient = (2 * scaled + count) // (2 * count)
        return self.decimal(_of(quotient if total.finite >= 0 else -quotient))


def _of(units: int) -> Total:
    total = Total()
    total.finite = units
    return total


class _Frame:
    """A window function of a value; NULLs are skipped, and no value gives NULL."""

    def __init__(self, finish: Callable[..., Any], *, scaled: bool) -> None:
        self._finish = finish
        self._scaled = scaled
        self._total = Total()
        self._count = 0
        self._options: tuple[int, ...] = ()

    def step(self, value: Any, *options: int) -> None:
        self._options = options
        self._move(value, 1)

    def inverse(self, value: Any, *_options: int) -> None:
        self._move(value, -1)

    def value(self) -> Any:
        return self._finish(self._total, self._count, *self._options) if self._count else None

    finalize = value

    def _move(self, value: Any, weight: int) -> None:
        if value is None:
            return
        self._count += weight
        if self._scaled:
            self._total.finite += weight * _units(value)
        else:
            self._total.add(value, weight)


def register(connection: sqlite3.Connection, fail: Fail) -> None:
    """Register the functions on a connection."""
    finish = Finish(fail)
    connection.create_aggregate("ev_total_of_doubles", 2, _DoubleSum)  # type: ignore[arg-type]  # step takes both
    connection.create_aggregate("ev_total_of_scaled", 2, _ScaledSum)  # type: ignore[arg-type]  # step takes both
    connection.create_aggregate("ev_total_of_texts", 2, _TextSum)  # type: ignore[arg-type]  # step takes both
    scalars: dict[str, tuple[int, Callable[..., Any]]] = {
        "ev_total_added": (2, _added),
        "ev_total_as_text": (1, _as_text),
        "ev_total_as_decimal": (1, lambda state: finish.decimal(Total(state))),
        "ev_total_as_double": (1, lambda state: finish.double(Total(state))),
        "ev_total_mean_double": (2, lambda state, count: finish.mean_double(Total(state), count)),
        "ev_total_mean_decimal": (
            3,
            lambda state, count, more: finish.mean_decimal(Total(state), count, more),
        ),
    }
    for name, (arity, function) in scalars.items():
        connection.create_function(name, arity, function, deterministic=True)
    frames: dict[str, tuple[int, bool, Callable[..., Any]]] = {
        "ev_frame_sum_bigint": (1, True, lambda total, _: finish.bigint(total)),
        "ev_frame_sum_decimal": (1, True, lambda total, _: finish.decimal(total)),
        "ev_frame_sum_double": (1, False, lambda total, _: finish.double(total)),
        "ev_frame_avg_bigint": (1, True, finish.mean_bigint),
        "ev_frame_avg_double": (1, False, finish.mean_double),
        "ev_frame_avg_decimal": (2, True, finish.mean_decimal),
    }
    for name, (arity, scaled, function) in frames.items():
        made = functools.partial(_Frame, function, scaled=scaled)
        connection.create_window_function(name, arity, made)  # type: ignore[arg-type]  # it is called
