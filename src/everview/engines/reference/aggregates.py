"""Aggregates over a list of values, exact and rounded once."""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from everview.algebra.exact_text import ExactSum
from everview.algebra.sketch_text import counts_text, marks_text, read_counts, read_marks
from everview.language.order import order_key
from everview.language.types import BIGINT_MAX, BIGINT_MIN, Kind, Type
from everview.language.values import EXACT, canonical_double, fit_decimal

__all__ = ["aggregate", "exact_sum"]


def aggregate(function: str, values: Sequence[Any], result: Type) -> Any:
    """An aggregate over values that are not NULL; `result` is its type. Fails with ArithmeticError."""
    if function == "count":
        return len(values)
    if not values:
        return None
    match function:
        case "min":
            return min(values, key=order_key)
        case "max":
            return max(values, key=order_key)
        case "bool_and":
            return all(values)
        case "bool_or":
            return any(values)
        case "sum":
            return _fitted(_sum(values), result)
        case "exact":
            return ExactSum.of(values).text()
        case "exact_sum":
            return canonical_double(sum(map(ExactSum.read, values), ExactSum()).nearest())
        case "sketch_marks":
            return marks_text(values)
        case "sketch_marks_union":
            return marks_text(mark for text in values for mark in read_marks(text))
        case "sketch_counts":
            return counts_text(Counter(values))
        case "sketch_counts_sum":
            return counts_text(sum((Counter(read_counts(text)) for text in values), Counter()))
        case "avg":
            return _average(values, result)
        case _:
            raise AssertionError(function)


def exact_sum(values: Sequence[float]) -> float:
    """The double nearest to the exact sum; infinities and NaN as IEEE 754 adds them.

    Intuitively, the order of the values cannot show. A finite sum beyond DOUBLE raises OverflowError.
    """
    special = [value for value in values if not math.isfinite(value)]
    if special:
        return canonical_double(sum(special))
    total = sum((Fraction(value) for value in values), Fraction(0))
    return canonical_double(total.numerator / total.denominator)


def _sum(values: Sequence[Any]) -> Any:
    if isinstance(values[0], float):
        return exact_sum(values)
    if isinstance(values[0], decimal.Decimal):
        total = decimal.Decimal(0)
        for value in values:
            total = EXACT.add(total, value)
        return total
    return sum(values)


def _fitted(total: Any, result: Type) -> Any:
    if result.kind is Kind.BIGINT and not BIGINT_MIN <= total <= BIGINT_MAX:
        raise OverflowError("sum does not fit BIGINT")
    return fit_decimal(total, result) if result.kind is Kind.DECIMAL else total


def _average(values: Sequence[Any], result: Type) -> Any:
    total = _sum(values)
    if result.kind is not Kind.DECIMAL:
        return canonical_double(float(total) / len(values))
    top, bottom = total.as_integer_ratio()
    scale = result.digits[1]
    whole, rest = divmod(abs(top) * 10**scale, bottom * len(values))
    rounded = whole + (2 * rest >= bottom * len(values))
    return fit_decimal(decimal.Decimal(-rounded if top < 0 else rounded).scaleb(-scale, EXACT), result)
