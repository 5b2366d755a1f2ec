"""Exact sums of doubles as text, to be carried elsewhere and added up there.

Every finite double is a whole number of 2^−1074. A sum is that number in hexadecimal, its last zeros counted
instead of written: `-1a@255` is −0x1a · 16^255 of them. Infinities and NaNs are counted behind it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["UNIT", "ExactSum", "is_exact_text"]

UNIT = 1074
"""Every finite double is a multiple of 2^−1074."""

_FORM = re.compile(
    r"(-?(?:0|[1-9a-f][0-9a-f]{0,559}))(?:@([1-9]\d{0,2}))?(?:,(\d{1,18}),(\d{1,18}),(\d{1,18}))?"
)
"""No sum of 2^63 doubles has more than 541 digits."""


class ExactSum(NamedTuple):
    """A sum in units of 2^−1074, and how many +∞, −∞ and NaN there are beside it."""

    units: int = 0
    plus: int = 0
    minus: int = 0
    nans: int = 0

    @classmethod
    def of(cls, values: Iterable[float]) -> ExactSum:
        """Return the sum of doubles."""
        units = plus = minus = nans = 0
        for value in values:
            if math.isnan(value):
                nans += 1
            elif math.isinf(value):
                plus, minus = plus + (value > 0), minus + (value < 0)
            else:
                top, bottom = value.as_integer_ratio()
                units += top << (UNIT - bottom.bit_length() + 1)
        return cls(units, plus, minus, nans)

    @classmethod
    def read(cls, text: str) -> ExactSum:
        """Return the sum that a text stands for; ValueError if it is none."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"{text[:40]!r} is no exact sum")
        digits, zeros, *special = found.groups()
        return cls(int(digits, 16) << (4 * int(zeros or 0)), *(int(count or 0) for count in special))

    def __add__(self, other: object) -> ExactSum:
        """Return the sum of both."""
        if not isinstance(other, ExactSum):
            return NotImplemented
        return ExactSum(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def text(self) -> str:
        """Return it as text; equal sums have equal texts."""
        digits = f"{self.units:x}"
        short = digits.rstrip("0")
        number = f"{short}@{len(digits) - len(short)}" if self.units and len(short) < len(digits) else digits
        return f"{number},{self.plus},{self.minus},{self.nans}" if any(self[1:]) else number

    def nearest(self) -> float:
        """Return the double nearest to it, as IEEE 754 adds infinities; OverflowError beyond the largest."""
        if self.nans or (self.plus and self.minus):
            return math.nan
        if self.plus or self.minus:
            return math.inf if self.plus else -math.inf
        return self.units / (1 << UNIT)


def is_exact_text(text: str) -> bool:
    """Whether a text stands for an exact sum."""
    return _FORM.fullmatch(text) is not None
