"""Whether columns hold what a store would hold: every value in the one stored form of its type.

A merge is total, so what a store cannot hold must be refused before it: a text in a column of integers, a
second form of one value (−0.0, a DECIMAL's negative zero).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from itertools import compress, repeat
from operator import is_not
from typing import Any, assert_never

from everview.engines.sqlite.integers import Integers, within
from everview.engines.sqlite.parts import PartColumn
from everview.engines.sqlite.scalars.storage import NAN_TEXT, is_long, store_value
from everview.errors import WireError
from everview.language.types import BIGINT_MAX, BIGINT_MIN, DATE, TIMESTAMP, Kind, Type

__all__ = ["check_columns", "wrong_in"]

_DATES: tuple[int, int] = (store_value(dt.date.min, DATE), store_value(dt.date.max, DATE))
_TIMESTAMPS: tuple[int, int] = (
    store_value(dt.datetime.min.replace(tzinfo=dt.UTC), TIMESTAMP),
    store_value(dt.datetime.max.replace(tzinfo=dt.UTC), TIMESTAMP),
)


def check_columns(
    stream: str, columns: Sequence[Sequence[Any]], wanted: Sequence[PartColumn], rows: int
) -> None:
    """Raise WireError unless these are the columns of so many rows."""
    if len(columns) != len(wanted):
        raise WireError(
            f"{stream} has {len(columns)} columns, and should have {len(wanted)}", where="section"
        )
    for number, (column, one) in enumerate(zip(columns, wanted, strict=True)):
        name = one.field.name if one.field else f"column {number}"
        if len(column) != rows:
            raise WireError(f"{stream}, {name}: {len(column)} values for {rows} rows", where="section")
        if (wrong := wrong_in(column, one)) is not None:
            raise WireError(f"{stream}, {name}: {wrong}", where="value")


def wrong_in(column: Sequence[Any], wanted: PartColumn) -> str | None:
    """Return what is wrong with a column, if anything is."""
    if wanted.field is None:
        return _range(column, 0, BIGINT_MAX)
    present = _present(column)
    if len(present) < len(column) and not wanted.field.nullable:
        return "NULL, where no NULL may be"
    return _wrong_value(present, wanted.field.type)


def _present(column: Sequence[Any]) -> Sequence[Any]:
    if isinstance(column, Integers):
        return column
    return list(compress(column, map(is_not, column, repeat(None))))


def _wrong_value(column: Sequence[Any], target: Type) -> str | None:
    match target.kind:
        case Kind.BOOLEAN:
            return _range(column, 0, 1)
        case Kind.BIGINT:
            return _range(column, BIGINT_MIN, BIGINT_MAX)
        case Kind.DATE:
            return _range(column, *_DATES)
        case Kind.TIMESTAMP:
            return _range(column, *_TIMESTAMPS)
        case Kind.DECIMAL if is_long(target):
            return _wrong_key(column, sum(target.digits))
        case Kind.DECIMAL:
            greatest = 10 ** sum(target.digits) - 1
            return _range(column, -greatest, greatest)
        case Kind.DOUBLE:
            return _wrong_double(column)
        case Kind.TEXT:
            return _wrong_text(column)
        case Kind.BLOB:
            return _kinds(column, bytes)
        case Kind.UNKNOWN:
            raise AssertionError("a column has a known type")
        case _:
            assert_never(target.kind)


def _kinds(column: Sequence[Any], *allowed: type) -> str | None:
    others = set(map(type, column)).difference(allowed)
    return f"a value of type {min(kind.__name__ for kind in others)}" if others else None


def _lengths(column: Sequence[Any], length: int) -> str | None:
    return None if set(map(len, column)) <= {length} else f"a value that has not the length {length}"


def _range(column: Sequence[Any], least: int, greatest: int) -> str | None:
    if not isinstance(column, Integers) and (wrong := _kinds(column, int)) is not None:
        return wrong
    return (
        None if within(column, least, greatest) else f"an integer that is not within {least} and {greatest}"
    )


def _wrong_double(column: Sequence[Any]) -> str | None:
    if (wrong := _kinds(column, float, str)) is not None:
        return wrong
    numbers = [value for value in column if value != NAN_TEXT] if NAN_TEXT in column else column
    if (wrong := _kinds(numbers, float)) is not None:
        return "a text that is not NaN"
    if any(map(math.isnan, numbers)):
        return "NaN as a number; it is stored as a text"
    if 0.0 in numbers and min(map(math.copysign, repeat(1.0), (value for value in numbers if not value))) < 0:
        return "−0.0; it is stored as 0.0"
    return None


def _wrong_text(column: Sequence[Any]) -> str | None:
    if (wrong := _kinds(column, str)) is not None:
        return wrong
    joined = "".join(column)
    if "\0" in joined:
        return "a text with the character U+0000"
    try:
        joined.encode()
    except UnicodeEncodeError:
        return "a text with lone surrogates"
    return None


def _wrong_key(column: Sequence[Any], digits: int) -> str | None:
    """A long DECIMAL: a sign digit, then its digits; zero has the positive sign."""
    if (wrong := _kinds(column, str) or _lengths(column, digits + 1)) is not None or not column:
        return wrong
    joined = "".join(column)
    if not (joined.isascii() and joined.isdigit() and set(joined[:: digits + 1]) <= {"0", "1"}):
        return f"a text that is no DECIMAL of {digits} digits"
    return "a negative zero" if "0" + "9" * digits in column else None
