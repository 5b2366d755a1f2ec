"""Sums of DOUBLEs that add up exactly: every value as whole numbers of one of 66 units.

A unit is a power of two so small that the value is a whole number of them, below 2^84; that number is kept
in three digits of 28 bits, which are whole numbers and add up without a trace. All steps are exact in DOUBLE
arithmetic: a scaling by a power of two, a truncation, a difference. Infinities and NaN are units themselves.

The sum is the language's own sum, exact and rounded once, over the digits times their units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from everview.language.aggregates import AggregateCall
from everview.language.expressions import And, Call, Case, Cast, Expression, InList, Literal
from everview.language.plan import Aggregate, Plan, UnionAll
from everview.language.types import BIGINT, DOUBLE
from everview.language.values import NAN
from everview.planner.circuit.weighted import ZERO, columns, compare, project, times

__all__ = ["digits", "summed"]

_STEP = 32
_MANTISSA = 52
_LEAST = -1074
_DIGIT = 28
_HALF = Literal(2**32, BIGINT)
_SPECIAL = tuple(Literal(value, DOUBLE) for value in (math.inf, -math.inf, NAN))


def digits(change: Plan) -> Plan:
    """From keys, value, weight to keys, unit; behind them, to be added up, number of values and digits."""
    *keys, value, weight = columns(change)
    # One projection a step, so that each is computed once.
    united = project(change, (*keys, value, _unit(value), weight))
    *keys, value, unit, weight = columns(united)
    special = InList(unit, _SPECIAL)
    scaled = Case(((special, Literal(0.0, DOUBLE)),), _double("/", value, unit))
    numbered = project(united, (*keys, unit, scaled, weight))
    *keys, unit, number, weight = columns(numbered)
    high = _truncated(number, 2 * _DIGIT)
    rest = _double("-", number, _double("*", high, _power(2 * _DIGIT)))
    halved = project(numbered, (*keys, unit, high, rest, weight))
    *keys, unit, top, rest, weight = columns(halved)
    middle = _truncated(rest, _DIGIT)
    low = _double("-", rest, _double("*", middle, _power(_DIGIT)))
    parts = (times(Cast(part, BIGINT), weight) for part in (top, middle, low))
    return project(halved, (*keys, unit, weight, *parts))


def summed(table: Plan, width: int, *, mean: bool) -> Plan:
    """From keys, unit, number of values and digits to keys and the sum, or the mean."""
    every = columns(table)
    keys, unit, count, places = every[:width], every[width], every[width + 1], every[width + 2 :]
    nothing = Literal(None, DOUBLE)
    special = InList(unit, _SPECIAL)
    # The number of values stands in a row with what is no number.
    there = And((special, compare(count, ">", ZERO)))
    parts = [project(table, (*keys, Case(((there, unit),), nothing), count))]
    for place, digit in enumerate(places):
        scale = _DIGIT * (len(places) - 1 - place)
        for part, more in ((Call("/", (digit, _HALF), BIGINT), 32), (Call("%", (digit, _HALF), BIGINT), 0)):
            # Half a digit's sum has at most 32 bits, so that it is a double.
            term = _double("*", _double("*", Cast(part, DOUBLE), _power(scale + more)), unit)
            parts.append(project(table, (*keys, Case(((special, nothing),), term), ZERO)))
    terms = UnionAll(tuple(parts))
    *own, term, number = columns(terms)
    names = tuple(f"x{i}" for i in range(width + 2))
    both = Aggregate(terms, tuple(own), (AggregateCall("sum", term), AggregateCall("sum", number)), names)
    *own, total, number = columns(both)
    value = _double("/", total, Cast(number, DOUBLE)) if mean else total
    return project(both, (*own, Case(((compare(number, ">", ZERO), value),), nothing)))


def _double(operator: str, left: Expression, right: Expression) -> Expression:
    return Call(operator, (left, right), DOUBLE)


def _power(exponent: int) -> Literal:
    return Literal(math.ldexp(1.0, exponent), DOUBLE)


def _truncated(number: Expression, bits: int) -> Expression:
    """The number of whole 2^bits in it, towards 0: what is left has fewer bits than the number."""
    zero = Literal(0.0, DOUBLE)
    scaled = _double("/", number, _power(bits))
    down = Call("floor", (scaled,), DOUBLE)
    up = _double("-", zero, Call("floor", (_double("-", zero, scaled),), DOUBLE))
    return Case(((compare(number, "<", zero), up),), down)


def _unit(value: Expression) -> Expression:
    """The unit of a value: found by halves, so that few comparisons are made."""
    size = Call("abs", (value,), DOUBLE)
    first, last = (_LEAST + _MANTISSA) // _STEP, 1023 // _STEP
    chosen = _among(size, range(first, last + 1))
    return Case(((InList(value, _SPECIAL), value),), chosen)


def _among(size: Expression, steps: Sequence[int]) -> Expression:
    if len(steps) == 1:
        return _power(max(steps[0] * _STEP - _MANTISSA, _LEAST))
    half = len(steps) // 2
    below = compare(size, "<", _power(steps[half] * _STEP))
    return Case(((below, _among(size, steps[:half])),), _among(size, steps[half:]))
