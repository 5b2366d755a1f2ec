"""Values as people see them: one form for each type, the same on a terminal, in a file and on a page.

BOOLEAN is `true` or `false`; BIGINT its digits; DECIMAL all digits of its scale; DOUBLE the shortest
digits that read back as the same number, `NaN`, `Infinity` or `-Infinity`; DATE `2026-01-31`; TIMESTAMP
`2026-01-31T12:30:00Z` in UTC, with up to six digits of a second; BLOB pairs of hexadecimal digits.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

__all__ = ["shown", "write_text"]


def write_text(value: Any) -> str:
    """A value, not NULL, in its one form."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _write_double(value)
        case decimal.Decimal():
            return f"{value:f}"
        case bytes():
            return value.hex()
        case dt.datetime():
            return value.isoformat().replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case _:
            return str(value)


def shown(value: Any) -> str:
    """A value on one line, without control characters; NULL is said."""
    if value is None:
        return "NULL"
    text = write_text(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _write_double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
