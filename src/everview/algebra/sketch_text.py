"""Sketches of a group's values as text: about how many different ones, and about which is at a rank.

A sketch is an exact account of something coarser than the values, so it follows from the values alone: not
from their order, not from chance, not from how they were shared out among sites.

- Of a text: its *mark*, one of 2,048 slots and a rank, both from its hash. Half of all texts have rank 1, a
  quarter rank 2, and so on; the greatest rank in each slot tells how many different texts there were
  (HyperLogLog, Flajolet et al. 2007, with Ertl's estimator of 2017, which needs no corrections).
- Of a double: its *step*, of which there are 128 between a power of two and the next, in the order of the
  doubles. How many values stand on each step tells which one is at a rank.

How often each mark or step is there adds up, so what is deleted is taken away and nothing of it is left.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

__all__ = [
    "at_step",
    "counts_text",
    "distinct",
    "is_counts_text",
    "is_marks_text",
    "mark",
    "marks_text",
    "percentile",
    "read_counts",
    "read_marks",
    "step",
]

_SLOTS = 2048
_HASHED = 52
"""Bits of a hash that the rank is read from; a rank goes to one more."""
_STEPS = 128
_LEAST = -1074
"""The exponent of the least double."""
_INFINITE = (1024 - _LEAST) * _STEPS + 1
_NAN = _INFINITE + 1

_SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
_VALUES = {sign: value for value, sign in enumerate(_SIGNS)}
_RANKS = _SIGNS[: _HASHED + 2]
_SPARSE = re.compile(r"(?:[0-9A-V][0-9A-Za-z\-_][1-9A-Za-r])*")
_DENSE = re.compile(rf"=[{_RANKS}]{{{_SLOTS}}}")
_COUNTS = re.compile(r"-?\d{1,6}(?:,-?\d{1,6})*;[1-9]\d{0,18}(?:,[1-9]\d{0,18})*")


def mark(text: str) -> int:
    """Return the mark of a text: 64 times its slot, plus its rank from 1 to 53."""
    hashed = int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:8])
    slot, rest = hashed >> (_HASHED + 1), hashed & ((1 << _HASHED) - 1)
    return slot << 6 | _HASHED + 1 - rest.bit_length()


def step(number: float) -> int:
    """Return the step of a double: greater for a greater one, and NaN is the greatest."""
    if not math.isfinite(number):
        return _NAN if math.isnan(number) else int(math.copysign(_INFINITE, number))
    if number == 0:
        return 0
    fraction, exponent = math.frexp(abs(number))
    found = (exponent - 1 - _LEAST) * _STEPS + int(fraction * 2 * _STEPS) - _STEPS + 1
    return found if number > 0 else -found


def at_step(number: int) -> float:
    """Return the double on a step that is nearest to 0."""
    if abs(number) >= _INFINITE:
        return math.nan if number == _NAN else math.copysign(math.inf, number)
    if number == 0:
        return 0.0
    exponent, rest = divmod(abs(number) - 1, _STEPS)
    return math.copysign(math.ldexp(_STEPS + rest, exponent + _LEAST - 7), number)


# How often each mark or step is there.


def counts_text(counts: Mapping[int, int]) -> str:
    """Return the places whose count is not 0, in order, and the counts; nothing of nothing."""
    there = sorted(place for place, count in counts.items() if count)
    if not there:
        return ""
    return f"{','.join(map(str, there))};{','.join([str(counts[place]) for place in there])}"


def read_counts(text: str) -> dict[int, int]:
    """Read such a text, of what comes and goes too."""
    if not text:
        return {}
    places, counts = text.split(";")
    return dict(zip(map(int, places.split(",")), map(int, counts.split(",")), strict=True))


def is_counts_text(text: str) -> bool:
    """Whether a text is a sketch of doubles: ascending steps, each with a count above 0."""
    if not _COUNTS.fullmatch(text):
        return False
    places, counts = ([int(part) for part in half.split(",")] for half in text.split(";"))
    ascending = all(a < b for a, b in pairwise(places))
    return len(places) == len(counts) and ascending and places[0] >= -_INFINITE and places[-1] <= _NAN


def percentile(text: str, fraction: float) -> float:
    """Return the double at a rank: on the first step that so large a part of all is not above."""
    if not is_counts_text(text):
        raise ValueError("this is not a sketch of numbers")
    if not 0 <= fraction <= 1:
        raise ValueError("a percentile lies from 0 to 1")
    counts = read_counts(text)
    missing = max(1, math.ceil(fraction * sum(counts.values())))
    for place, count in counts.items():
        missing -= count
        if missing <= 0:
            return at_step(place)
    return at_step(place)  # where the product was rounded up


# The greatest ranks.


def marks_text(marks: Iterable[int]) -> str:
    """Return the greatest mark of each slot; three signs for each, or, where that is shorter, one for all."""
    greatest = {found >> 6: found for found in sorted(marks)}
    if 3 * len(greatest) <= _SLOTS:
        return "".join(
            [
                _SIGNS[found >> 12] + _SIGNS[found >> 6 & 63] + _SIGNS[found & 63]
                for found in greatest.values()
            ]
        )
    return "=" + "".join([_SIGNS[greatest.get(slot, 0) & 63] for slot in range(_SLOTS)])


def read_marks(text: str) -> list[int]:
    """Read such a text."""
    if text.startswith("="):
        ranks = [_VALUES[sign] for sign in text[1:]]
        return [slot << 6 | rank for slot, rank in enumerate(ranks) if rank]
    values = [_VALUES[sign] for sign in text]
    parts = zip(values[::3], values[1::3], values[2::3], strict=True)
    return [high << 12 | middle << 6 | low for high, middle, low in parts]


def is_marks_text(text: str) -> bool:
    """Whether a text is a sketch of different values."""
    if text.startswith("="):
        return _DENSE.fullmatch(text) is not None
    if len(text) > 3 * _SLOTS or not _SPARSE.fullmatch(text):
        return False
    slots = [found >> 6 for found in read_marks(text)]
    return all(a < b for a, b in pairwise(slots))


def distinct(text: str) -> int:
    """Return about how many different values there were."""
    if not is_marks_text(text):
        raise ValueError("this is not a sketch of different values")
    ranks = [0] * (_HASHED + 2)
    for found in read_marks(text):
        ranks[found & 63] += 1
    ranks[0] = _SLOTS - sum(ranks)
    total = _SLOTS * _tau(1 - ranks[-1] / _SLOTS)
    for number in reversed(ranks[1:-1]):
        total = 0.5 * (total + number)
    total += _SLOTS * _sigma(ranks[0] / _SLOTS)
    if total < _SLOTS * 2.0**-_HASHED:
        raise OverflowError("so many different values cannot be told apart")
    return round(_SLOTS * _SLOTS / (2 * math.log(2) * total))


def _sigma(part: float) -> float:
    """Ertl's correction for slots that are empty: x + Σ x^(2^k)·2^(k−1)."""
    if part == 1:
        return math.inf
    total, factor = part, 1.0
    while True:
        part *= part
        before, total = total, total + part * factor
        factor += factor
        if total == before:
            return total


def _tau(part: float) -> float:
    """Ertl's correction for slots that are full: (1 − x − Σ (1 − x^(2^−k))²·2^−k) / 3."""
    if part in (0, 1):
        return 0.0
    total, factor = 1 - part, 1.0
    while True:
        part = math.sqrt(part)
        factor *= 0.5
        before, total = total, total - (1 - part) ** 2 * factor
        if total == before:
            return total / 3
