"""INTERVALs of a fixed length: units that are as long on every day of every year."""

from __future__ import annotations

import decimal
import re

__all__ = ["IntervalError", "interval_microseconds"]

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT_UNITS = {"hr": "hour", "h": "hour", "min": "minute", "sec": "second", "d": "day"}
_AMOUNT = r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)"


class IntervalError(ValueError):
    """A text is no interval of a fixed length; `hint` says what to write."""

    def __init__(self, message: str, hint: str) -> None:
        self.hint = hint
        super().__init__(message)


def interval_microseconds(text: str) -> int:
    """The length of an interval such as '1 day 2 hours'; IntervalError if it has none."""
    total = 0
    for amount, word in re.findall(_AMOUNT, text):
        name = word.lower().removesuffix("s")
        if name in ("month", "mon", "year", "y", "quarter", "decade"):
            raise IntervalError(f"INTERVAL of {word}: its length depends on the date", "use days or weeks")
        factor = _UNITS.get(_SHORT_UNITS.get(name, name))
        if factor is None:
            raise IntervalError(f"INTERVAL knows no {word}", f"it knows {', '.join(_UNITS)}")
        total += int(decimal.Decimal(amount) * factor)
    if re.sub(_AMOUNT, "", text).strip() or not text.strip():
        raise IntervalError(f"INTERVAL '{text}' is not understood", "write '1 day 2 hours'")
    return total
