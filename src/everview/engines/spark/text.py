"""Pieces of Spark SQL text: literals, and names for values that are used twice.

A literal is written so that it means the same under any setting of the session: no time zone, no
variable, no default type is looked up.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, assert_never

from everview.engines.spark.by_python import PREFIX
from everview.engines.spark.types import sql_type
from everview.language.types import Kind, Type

__all__ = ["Names", "literal", "quoted", "within"]

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

FIRST_DAY, LAST_DAY = (day.toordinal() - _EPOCH_DAY for day in (dt.date.min, dt.date.max))
FIRST_MICROSECOND = FIRST_DAY * 86_400_000_000
LAST_MICROSECOND = (LAST_DAY + 1) * 86_400_000_000 - 1

_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "$": "\\u0024",  # ${name} would be replaced by a setting of the session
}


def quoted(text: str) -> str:
    """A text as a literal of Spark SQL."""
    return "'" + "".join(_ESCAPES.get(character, character) for character in text) + "'"


def literal(value: Any, kind: Type) -> str:
    """A value in its one form as a literal of exactly its type."""
    if value is None:
        return f"CAST(NULL AS {sql_type(kind)})"
    match kind.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.BIGINT:
            return f"{value}L"
        case Kind.DOUBLE:
            return f"{value!r}D" if math.isfinite(value) else f"double('{value!r}')"
        case Kind.DECIMAL:
            return f"CAST('{value:f}' AS {sql_type(kind)})"
        case Kind.TEXT:
            return quoted(value)
        case Kind.BLOB:
            return f"X'{value.hex()}'"
        case Kind.DATE:
            return f"date_from_unix_date({value.toordinal() - _EPOCH_DAY})"
        case Kind.TIMESTAMP:
            return f"timestamp_micros({(value - _EPOCH) // dt.timedelta(microseconds=1)}L)"
        case Kind.UNKNOWN:
            raise ValueError("a literal of a finished plan has a type")
        case _:
            assert_never(kind.kind)


def within(number: str, low: int, high: int) -> str:
    """The BIGINT itself if low ≤ number ≤ high, else NULL; the text is used once."""
    below, above = f"{low - 1}L", f"{high + 1}L"
    return f"nullif(nullif(greatest(least({number}, {above}), {below}), {above}), {below})"


_SHORT = 40
"""A text of at most this length is repeated rather than named, unless Python is to compute it."""


@dataclass(slots=True)
class Names:
    """Names for values inside one expression.

    SQL has no `let`, and a guard reads what it guards twice, so that texts would double with each
    level. A long one becomes the argument of a lambda over an array of one instead.
    """

    _numbers: count[int] = field(default_factory=count)

    def let(self, values: tuple[str, ...], body: Callable[..., str]) -> str:
        """The text of `body` over these values, each of them evaluated as often as it is cheap to."""
        used = list(values)
        named: list[str] = []
        variable = ""
        for place, value in enumerate(values):
            if len(value) <= _SHORT and PREFIX not in value:
                continue
            variable = variable or f"v{next(self._numbers)}"
            named.append(f"{value} AS f{place}")
            used[place] = f"{variable}.f{place}"
        if not named:
            return body(*used)
        return f"transform(array(struct({', '.join(named)})), {variable} -> {body(*used)})[0]"
