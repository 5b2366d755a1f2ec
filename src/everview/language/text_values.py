r"""Values as text: one form for each type, written and read alike in CSV, JSON and on the screen.

BOOLEAN is `true` or `false`; BIGINT its digits; DECIMAL all digits of its scale; DOUBLE the shortest
digits that read back as the same number, `NaN`, `Infinity` or `-Infinity`; DATE `2026-01-31`; TIMESTAMP
`2026-01-31T12:30:00Z` in UTC, with up to six digits of a second; BLOB pairs of hexadecimal digits.

Reading also takes what SQL's CAST takes: `t`, `yes` or `1` for true, spaces around a value, a space
for the T, any offset from UTC (none means UTC), `\x` before hexadecimal digits. It never rounds.

Columns are read whole: a pattern over the joined column decides whether one fast call a cell will do.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from everview.errors import DataError
from everview.language.casts import CastError, cast_value
from everview.language.types import BIGINT_MAX, BIGINT_MIN, DATE, DOUBLE, TEXT, Field, Kind, Type

__all__ = ["UnreadableError", "misfit", "read_text", "read_texts", "write_text"]

Cell = Callable[[str], Any]


class UnreadableError(ValueError):
    """A text is no value of a type; `index` says which text of the column."""

    def __init__(self, index: int, text: str, expected: str) -> None:
        self.index = index
        self.text = text
        self.expected = expected
        super().__init__(f"{text!r} is no {expected}")


def misfit(relation: str, field: Field, bad: UnreadableError) -> DataError:
    """What to raise for a text that is no value of a column."""
    return DataError(
        f"{relation}.{field.name} cannot be {bad.text!r}: expected {bad.expected}",
        relation=relation,
        column=field.name,
        value=bad.text,
        expected=str(field.type),
    )


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


def _write_double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def read_text(text: str, target: Type) -> Any:
    """The value that a text stands for; UnreadableError if it is none of this type."""
    try:
        return _reader(target)(text)
    except (CastError, ValueError, decimal.InvalidOperation):
        raise UnreadableError(0, text, _expected(target)) from None


def read_texts(column: Sequence[str | None], target: Type) -> Sequence[Any]:
    """The values of a column of texts, NULL where there is none; UnreadableError for the first misfit."""
    if target.kind is Kind.TEXT:
        return column
    if None in column:
        present = [text for text in column if text is not None]
        values = iter(_read_present(present, column, target))
        return [None if text is None else next(values) for text in column]
    return _read_present(column, column, target)  # type: ignore[arg-type]  # no cell is None


def _read_present(texts: Sequence[str], column: Sequence[str | None], target: Type) -> Sequence[Any]:
    fast = _FAST.get(target.kind)
    if fast is not None and fast[0].fullmatch("\n".join(texts)):
        try:
            return fast[1](texts)
        except ValueError:
            pass  # February 30, or a line feed inside a cell: cell by cell will say which
    return _one_by_one(column, target)


def _one_by_one(column: Sequence[str | None], target: Type) -> list[Any]:
    """The values of the texts that are there."""
    read = _reader(target)
    values = []
    for index, text in enumerate(column):
        if text is not None:
            try:
                values.append(read(text))
            except (CastError, ValueError, decimal.InvalidOperation):
                raise UnreadableError(index, text, _expected(target)) from None
    return values


def _reader(target: Type) -> Cell:
    match target.kind:
        case Kind.TEXT:
            return str
        case Kind.DECIMAL:
            return _decimal
        case Kind.BLOB:
            return _blob
        case Kind.DATE:
            return _date
        case Kind.BOOLEAN | Kind.BIGINT | Kind.DOUBLE | Kind.TIMESTAMP:
            return lambda text: cast_value(text, TEXT, target)
        case Kind.UNKNOWN:
            raise AssertionError("a column has a known type")
        case _:
            assert_never(target.kind)


def _decimal(text: str) -> decimal.Decimal:
    """Exactly what is written; whether it fits the scale is the relation's own question."""
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(text)
    return decimal.Decimal(text.strip())


def _date(text: str) -> Any:
    """A day alone: CAST would drop a time of day."""
    if ":" in text:
        raise ValueError(text)
    return cast_value(text, TEXT, DATE)


def _blob(text: str) -> bytes:
    digits = text.strip().removeprefix("\\x")
    if not _HEX.fullmatch(digits):
        raise ValueError(text)
    return bytes.fromhex(digits)


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*", re.ASCII)


def _integers(texts: Sequence[str]) -> list[int]:
    values = list(map(int, texts))
    if min(values) < BIGINT_MIN or max(values) > BIGINT_MAX:
        raise ValueError("out of range")
    return values


def _doubles(texts: Sequence[str]) -> list[float]:
    """Doubles; a 0 or an infinity may be a number out of range, which CAST refuses."""
    values = list(map(float, texts))
    if 0.0 in values or math.inf in values or -math.inf in values:
        return [
            cast_value(text, TEXT, DOUBLE) if value == 0.0 or math.isinf(value) else value
            for text, value in zip(texts, values, strict=True)
        ]
    return values


def _timestamps(texts: Sequence[str]) -> list[dt.datetime]:
    values = map(dt.datetime.fromisoformat, texts)
    return [value if value.tzinfo is dt.UTC else _utc(value) for value in values]


def _utc(value: dt.datetime) -> dt.datetime:
    try:
        return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
    except OverflowError:
        raise ValueError(value) from None


def _column_of(cell: str) -> re.Pattern[str]:
    """Matches a column, joined by line feeds, whose cells all match; possessive, so in one pass."""
    return re.compile(rf"(?:{cell})(?:\n(?:{cell}))*+", re.ASCII)


_BOOLEANS = {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False}

_FAST: dict[Kind, tuple[re.Pattern[str], Callable[[Sequence[str]], Sequence[Any]]]] = {
    Kind.BOOLEAN: (_column_of("true|false|[tf01]"), lambda texts: [_BOOLEANS[text] for text in texts]),
    Kind.BIGINT: (_column_of(r"[+-]?[0-9]{1,19}+"), _integers),
    Kind.DOUBLE: (
        _column_of(r"[+-]?[0-9]{1,40}+(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?"),
        _doubles,
    ),
    Kind.DECIMAL: (
        _column_of(r"[+-]?[0-9]++(?:\.[0-9]++)?"),
        lambda texts: list(map(decimal.Decimal, texts)),
    ),
    Kind.DATE: (
        _column_of(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
        lambda texts: list(map(dt.date.fromisoformat, texts)),
    ),
    Kind.TIMESTAMP: (
        _column_of(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{3}(?:[0-9]{3})?)?"
            r"(?:Z|[+-](?:0[0-9]|1[0-5]):[0-5][0-9])?+"
        ),
        _timestamps,
    ),
}


def _expected(target: Type) -> str:
    """What would have been right, with an example where the type's name does not say it."""
    match target.kind:
        case Kind.BOOLEAN:
            return "BOOLEAN (true or false)"
        case Kind.DATE:
            return "DATE (such as 2026-01-31)"
        case Kind.TIMESTAMP:
            return "TIMESTAMP (such as 2026-01-31T12:30:00Z)"
        case Kind.BLOB:
            return "BLOB (pairs of hexadecimal digits, such as 00ff)"
        case Kind.BIGINT:
            return "BIGINT (a whole number of 64 bits)"
        case _:
            return str(target)
