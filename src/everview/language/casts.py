"""CAST, value by value: what each pair of types allows, and what comes out.

The rules are PostgreSQL's. Numbers round: DOUBLE to BIGINT half to even, DECIMAL half away from zero;
DOUBLE becomes DECIMAL through its 15 significant digits. Text is read strictly (ISO dates only) and
written as PostgreSQL writes it. What cannot be cast raises CastError, which a view turns into NULL.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from typing import Any, assert_never

from everview.language.types import BIGINT_MAX, BIGINT_MIN, TIMESTAMP, Kind, Type
from everview.language.values import UnfitError, canonical_double, check_value, fit_decimal

__all__ = ["CastError", "can_cast", "cast_fails", "cast_value"]


class CastError(ValueError):
    """This value cannot be cast to that type."""


_ALL = frozenset(Kind) - {Kind.UNKNOWN}
_NUMBERS = frozenset({Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE})
_TARGETS: dict[Kind, frozenset[Kind]] = {
    Kind.UNKNOWN: _ALL,
    Kind.TEXT: _ALL,
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN, Kind.BIGINT, Kind.TEXT}),
    Kind.BIGINT: _NUMBERS | {Kind.BOOLEAN, Kind.TEXT},
    Kind.DECIMAL: _NUMBERS | {Kind.TEXT},
    Kind.DOUBLE: _NUMBERS | {Kind.TEXT},
    Kind.BLOB: frozenset({Kind.BLOB, Kind.TEXT}),
    Kind.DATE: frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TEXT}),
    Kind.TIMESTAMP: frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TEXT}),
}


def can_cast(source: Type, target: Type) -> bool:
    """Whether CAST from `source` to `target` exists at all."""
    return target.kind in _TARGETS[source.kind]


def cast_fails(source: Type, target: Type) -> bool:
    """Whether such a CAST may fail for some value."""
    match source.kind, target.kind:
        case (_, Kind.TEXT) | (Kind.BOOLEAN, _) | (Kind.DATE | Kind.TIMESTAMP, _):
            return False
        case (Kind.BIGINT, Kind.BOOLEAN | Kind.DOUBLE) | (Kind.DECIMAL, Kind.DOUBLE):
            return False
        case (Kind.BIGINT | Kind.DECIMAL, Kind.DECIMAL):
            (whole, scale), (target_whole, target_scale) = source.digits, target.digits
            # Rounding to a smaller scale can carry into one more digit before the point.
            return target_whole < whole + (1 if target_scale < scale else 0)
        case _:
            return source != target


def cast_value(value: Any, source: Type, target: Type) -> Any:
    """`value`, which is of type `source`, as `target`; CastError when it cannot be."""
    if value is None or source == target:
        return value
    try:
        return _cast(value, target)
    except (UnfitError, decimal.InvalidOperation, OverflowError) as error:
        raise CastError(f"{value!r} cannot be cast to {target}: expected {error}") from None


def _cast(value: Any, target: Type) -> Any:
    match target.kind:
        case Kind.TEXT:
            return to_text(value)
        case Kind.BOOLEAN:
            return _boolean(value)
        case Kind.BIGINT:
            return _bigint(value)
        case Kind.DOUBLE:
            return _double(value)
        case Kind.DECIMAL:
            return fit_decimal(_decimal(value), target, rounded=True)
        case Kind.BLOB:
            return _blob(value)
        case Kind.DATE:
            return value.date() if isinstance(value, dt.datetime) else _date(value)
        case Kind.TIMESTAMP:
            if isinstance(value, dt.date):
                return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
            return _timestamp(value)
        case Kind.UNKNOWN:
            raise UnfitError("a known type")
        case _:
            assert_never(target.kind)


def to_text(value: Any) -> str:
    """A value as PostgreSQL writes it."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _double_text(value)
        case decimal.Decimal():
            return f"{value:f}"
        case bytes():
            return "\\x" + value.hex()
        case dt.datetime():
            whole = f"{value.year:04}-{value:%m-%d %H:%M:%S}"
            return whole + (f".{value.microsecond:06}".rstrip("0") if value.microsecond else "")
        case _:
            return str(value.isoformat())


def _double_text(value: float) -> str:
    """The shortest digits that read back as the same double; plain between 1e−4 and 1e15."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = decimal.Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)  # where the decimal point stands, counted from the first digit
    minus = "-" if sign else ""
    if text == "0":
        return "0"
    if -4 < point <= 15:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        whole, fraction = text[:point].ljust(point, "0"), text[point:]
        return f"{minus}{whole}.{fraction}" if fraction else f"{minus}{whole}"
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{minus}{mantissa}e{point - 1:+03d}"


_SPACES = " \t\n\r\v\f"
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def _boolean(value: Any) -> bool:
    if isinstance(value, int):
        return value != 0
    text = value.strip(_SPACES).lower()
    # PostgreSQL takes any unambiguous beginning of these words: "o" begins both on and off.
    is_true = bool(text) and text != "o" and any(word.startswith(text) for word in _TRUE)
    is_false = bool(text) and text != "o" and any(word.startswith(text) for word in _FALSE)
    if is_true == is_false:
        raise UnfitError("true or false")
    return is_true


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def _in_bigint(value: int) -> int:
    if not BIGINT_MIN <= value <= BIGINT_MAX:
        raise UnfitError("BIGINT: −2^63 to 2^63 − 1")
    return value


def _bigint(value: Any) -> int:
    match value:
        case bool():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise UnfitError("a finite number")
            return _in_bigint(round(value))
        case decimal.Decimal():
            return _in_bigint(int(value.to_integral_value(decimal.ROUND_HALF_UP)))
        case _:
            text = value.strip(_SPACES)
            if not _INTEGER.fullmatch(text) or len(text) > 1000:
                raise UnfitError("a whole number")
            return _in_bigint(int(text))


_SPECIAL = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-infinity": -math.inf,
}


def _double(value: Any) -> float:
    if not isinstance(value, str):
        return canonical_double(float(value))
    text = value.strip(_SPACES)
    if text.lower() in _SPECIAL:
        return canonical_double(_SPECIAL[text.lower()])
    if not _NUMBER.fullmatch(text):
        raise UnfitError("a number")
    number = float(text)
    if math.isinf(number) or (number == 0 and re.search("[1-9]", re.split("[eE]", text)[0])):
        raise UnfitError("a number within DOUBLE's range")
    return canonical_double(number)


def _decimal(value: Any) -> decimal.Decimal:
    match value:
        case int():
            return decimal.Decimal(value)
        case decimal.Decimal():
            return value
        case float():
            return decimal.Decimal(format(value, ".15g"))
        case _:
            text = value.strip(_SPACES)
            if not _NUMBER.fullmatch(text):
                raise UnfitError("a number")
            return decimal.Decimal(text)


def _blob(value: str) -> bytes:
    if not value.startswith("\\x") or len(value) % 2 or not re.fullmatch("[0-9a-fA-F]*", value[2:]):
        raise UnfitError(r"bytes in hexadecimal, such as \x00ff")
    return bytes.fromhex(value[2:])


_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})", re.ASCII)
_TIME = re.compile(
    r"[ T]\s*([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?"
    r"(?:\s*(?:([Zz])|([+-])([0-9]{1,2})(?::?([0-9]{2}))?))?",
    re.ASCII,
)


def _date_and_rest(text: str) -> tuple[dt.date, str]:
    found = _DATE.match(text)
    try:
        if found:
            return dt.date(int(found[1]), int(found[2]), int(found[3])), text[found.end() :]
    except ValueError:
        pass
    raise UnfitError("a date such as 2026-01-31")


def _date(value: str) -> dt.date:
    """A date; a time of day after it is read and dropped, as PostgreSQL does."""
    return _local(value)[0].date()


def _timestamp(value: str) -> dt.datetime:
    local, offset = _local(value)
    return check_value(local - offset, TIMESTAMP)  # type: ignore[no-any-return]


def _local(value: str) -> tuple[dt.datetime, dt.timedelta]:
    """The clock time that a text names, and how far its clock is ahead of UTC."""
    day, rest = _date_and_rest(value.strip(_SPACES))
    midnight = dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
    if not rest:
        return midnight, dt.timedelta()
    found = _TIME.fullmatch(rest)
    expected = "a timestamp such as 2026-01-31 12:30:00.5, with or without +02:00"
    if not found:
        raise UnfitError(expected)
    hour, minute, second, fraction, _, sign, offset_hours, offset_minutes = found.groups()
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    past_midnight = hours > 24 or (hours == 24 and (minutes or seconds or int(fraction or 0)))
    if past_midnight or minutes > 59 or seconds > 60 or int(offset_hours or 0) > 15:
        raise UnfitError(expected)
    microseconds = int((fraction or "").ljust(6, "0") or 0)
    moment = midnight + dt.timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=microseconds)
    offset = dt.timedelta(hours=int(offset_hours or 0), minutes=int(offset_minutes or 0))
    return moment, -offset if sign == "-" else offset
