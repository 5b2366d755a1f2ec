"""How a value of each type lies in SQLite, in both directions.

The stored form keeps equality and order: SQLite's own comparison of two stored values of one type is
ours, so indexes, GROUP BY, DISTINCT and ORDER BY need no help.

- BOOLEAN is INTEGER 0 or 1; BIGINT is INTEGER; TEXT and BLOB are themselves.
- DOUBLE is REAL; NaN, which SQLite would turn into NULL, is the text `NaN`: text sorts after all
  numbers and equals itself, exactly as NaN does here.
- DATE is INTEGER days, TIMESTAMP INTEGER microseconds, since 1970-01-01 00:00 UTC.
- DECIMAL(p,s) with p ≤ 18 ("short") is INTEGER, the value times 10^s; with more digits ("long") it is a
  TEXT key: a sign digit, then p digits, complemented to nines for negatives.
"""

from __future__ import annotations

import datetime as dt
import decimal
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, assert_never

from everview.language.types import Kind, Type
from everview.language.values import EXACT, NAN

__all__ = [
    "NAN_TEXT",
    "SHORT_DIGITS",
    "MalformedError",
    "column_type",
    "decode_long",
    "encode_long",
    "from_stored",
    "is_long",
    "load_rows",
    "load_value",
    "store_rows",
    "store_value",
    "storing",
    "to_stored",
]

NAN_TEXT = "NaN"
SHORT_DIGITS = 18
"""The most digits that every scaled DECIMAL of a "short" type can have within SQLite's 64-bit INTEGER."""

Converter = Callable[[Any], Any]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)


def is_long(target: Type) -> bool:
    """Whether values of this type are stored as text keys: DECIMALs of more than 18 digits."""
    return target.kind is Kind.DECIMAL and sum(target.digits) > SHORT_DIGITS


def column_type(target: Type) -> str:
    """The declared type of a column: its affinity must never change a stored value."""
    match target.kind:
        case Kind.BOOLEAN | Kind.BIGINT | Kind.DATE | Kind.TIMESTAMP:
            return "INTEGER"
        case Kind.DOUBLE:
            return "REAL"
        case Kind.DECIMAL:
            return "TEXT" if is_long(target) else "INTEGER"
        case Kind.TEXT:
            return "TEXT"
        case Kind.BLOB:
            return "BLOB"
        case Kind.UNKNOWN:
            raise AssertionError("a column has a known type")
        case _:
            assert_never(target.kind)


def encode_long(scaled: int, digits: int) -> str:
    """The key of a scaled DECIMAL: keys of one width order by bytes as the numbers do."""
    if scaled >= 0:
        return "1" + str(scaled).zfill(digits)
    return "0" + str(10**digits - 1 + scaled).zfill(digits)


def decode_long(key: str) -> int:
    """The scaled number of a key; its width is the key's own."""
    number = int(key[1:])
    return number if key[0] == "1" else number - 10 ** (len(key) - 1) + 1


def to_stored(target: Type) -> Converter | None:
    """What turns a value (not NULL) into its stored form; None when it is stored as it is."""
    match target.kind:
        case Kind.BIGINT | Kind.TEXT | Kind.BLOB:
            return None
        case Kind.BOOLEAN:
            return None  # a bool is bound as the integer that it is
        case Kind.DOUBLE:
            return _store_double
        case Kind.DATE:
            return _store_date
        case Kind.TIMESTAMP:
            return _store_timestamp
        case Kind.DECIMAL:
            whole, scale = target.digits
            if is_long(target):
                return lambda value: encode_long(int(EXACT.scaleb(value, scale)), whole + scale)
            return lambda value: int(EXACT.scaleb(value, scale))
        case Kind.UNKNOWN:
            raise AssertionError("a stored value has a known type")
        case _:
            assert_never(target.kind)


def from_stored(target: Type) -> Converter | None:
    """What turns a stored form (not NULL) back into the value; None when it is the value already."""
    match target.kind:
        case Kind.BIGINT | Kind.TEXT | Kind.BLOB:
            return None
        case Kind.BOOLEAN:
            return bool
        case Kind.DOUBLE:
            return _load_double
        case Kind.DATE:
            return _load_date
        case Kind.TIMESTAMP:
            return _load_timestamp
        case Kind.DECIMAL:
            shift = -target.digits[1]
            if is_long(target):
                return lambda key: EXACT.scaleb(decimal.Decimal(decode_long(key)), shift)
            return lambda scaled: EXACT.scaleb(decimal.Decimal(scaled), shift)
        case Kind.UNKNOWN:
            raise AssertionError("a stored value has a known type")
        case _:
            assert_never(target.kind)


def store_value(value: Any, target: Type) -> Any:
    """One value in its stored form; NULL stays NULL."""
    convert = to_stored(target)
    return value if value is None or convert is None else convert(value)


def load_value(stored: Any, target: Type) -> Any:
    """The value of one stored form; NULL stays NULL."""
    convert = from_stored(target)
    return stored if stored is None or convert is None else convert(stored)


Rows = Sequence[tuple[Any, ...]]


def storing(types: Sequence[Type]) -> Callable[[Rows], Rows]:
    """`store_rows` for these types, with the conversions looked up once."""
    converters = [_store_column(target) for target in types]
    return lambda rows: _convert(rows, converters)


def store_rows(types: Sequence[Type], rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Rows of values in their one form, as SQLite is given them; untouched when nothing must change."""
    return storing(types)(rows)


class MalformedError(sqlite3.DatabaseError):
    """What lies in the file is the stored form of no value; to be explained like SQLite's own errors."""


def load_rows(types: Sequence[Type], rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Rows as SQLite gives them, as values; untouched when nothing must change."""
    try:
        return _convert(rows, [_load_column(target) for target in types])
    except (ValueError, TypeError, ArithmeticError) as error:
        raise MalformedError(f"a stored value is malformed ({error})") from error


_Column = Sequence[Any]


def _convert(
    rows: Sequence[tuple[Any, ...]], converters: Sequence[Callable[[_Column], _Column] | None]
) -> Sequence[tuple[Any, ...]]:
    if not rows or all(converter is None for converter in converters):
        return rows
    columns: list[_Column] = list(zip(*rows, strict=True))
    changed = False
    for index, converter in enumerate(converters):
        if converter is not None:
            new = converter(columns[index])
            changed = changed or new is not columns[index]
            columns[index] = new
    return list(zip(*columns, strict=True)) if changed else rows


def _store_column(target: Type) -> Callable[[_Column], _Column] | None:
    if target.kind is Kind.DOUBLE:
        # There is one NaN object, and containment looks at identity first.
        return lambda column: _each(_store_double, column) if NAN in column else column
    return _column_of(to_stored(target))


def _load_column(target: Type) -> Callable[[_Column], _Column] | None:
    if target.kind is Kind.DOUBLE:
        return lambda column: _each(_load_double, column) if NAN_TEXT in column else column
    return _column_of(from_stored(target))


def _column_of(convert: Converter | None) -> Callable[[_Column], _Column] | None:
    return None if convert is None else lambda column: _each(convert, column)


def _each(convert: Converter, column: Iterable[Any]) -> list[Any]:
    return [None if value is None else convert(value) for value in column]


def _store_double(value: float) -> float | str:
    return value if value == value else NAN_TEXT  # noqa: PLR0124  (NaN)


def _load_double(stored: float | str) -> float:
    return NAN if isinstance(stored, str) else stored


def _store_date(value: dt.date) -> int:
    return value.toordinal() - _EPOCH_ORDINAL


def _load_date(days: int) -> dt.date:
    return dt.date.fromordinal(days + _EPOCH_ORDINAL)


def _store_timestamp(value: dt.datetime) -> int:
    since = value - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _load_timestamp(microseconds: int) -> dt.datetime:
    return _EPOCH + microseconds * _MICROSECOND
