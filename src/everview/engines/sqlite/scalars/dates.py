"""Functions on DATE and TIMESTAMP.

Moments are counted from 0001-01-01 where something is divided, since from there on all are positive and
cutting is rounding down; that day was a Monday, so weeks are counted from it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.engines.sqlite.scalars.arithmetic import Implementation
from everview.engines.sqlite.scalars.fragments import Operand, Writer
from everview.language.expressions import Call
from everview.language.types import Kind

__all__ = ["DATES", "day_sql"]

_DAY = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_FIRST, _LAST = _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1
_SECOND = 1_000_000


def _since_year_one(moment: str) -> str:
    return f"({moment} + {-_FIRST})"


def day_sql(moment: str) -> str:
    """The stored DATE of a stored TIMESTAMP."""
    return f"({_since_year_one(moment)} / {_DAY} - {-_FIRST_DAY})"


def _bounded(least: int, most: int, what: str) -> Callable[[Writer, str, Sequence[Operand]], str]:
    def write(writer: Writer, operator: str, operands: Sequence[Operand]) -> str:
        def body(left: str, right: str) -> str:
            result = f"{left} {operator} {right}"
            return (
                f"CASE WHEN {result} BETWEEN {least} AND {most} THEN {result} "
                f"WHEN {result} IS NOT NULL THEN {writer.fail(what)} END"
            )

        return writer.let(operands, body)

    return write


_days = _bounded(_FIRST_DAY, _LAST_DAY, "date value out of range")
_moments = _bounded(_FIRST, _LAST, "timestamp out of range")


def _plus(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    return _days(writer, "+", operands)


def _minus(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    if operands[1].type.kind is Kind.DATE:
        return f"({operands[0].sql} - {operands[1].sql})"
    return _days(writer, "-", operands)


def _add_microseconds(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    return _moments(writer, "+", operands)


def _tumble(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    def body(moment: str, size: str) -> str:
        rest = f"{moment} % {size}"
        begun = f"{moment} - {rest} - iif({rest} < 0, {size}, 0)"
        failed = writer.fail("timestamp out of range")
        there = f"{moment} IS NOT NULL AND {size} IS NOT NULL"
        return f"CASE WHEN {size} > 0 AND {begun} >= {_FIRST} THEN {begun} WHEN {there} THEN {failed} END"

    return writer.let(operands, body)


def _seconds(operand: Operand) -> str:
    """Whole seconds since 1970, what SQLite's own date functions take."""
    if operand.type.kind is Kind.DATE:
        return f"{operand.sql} * 86400"
    return f"{_since_year_one(operand.sql)} / {_SECOND} - {-_FIRST // _SECOND}"


def _calendar(code: str, *, adjust: Callable[[str], str] = lambda number: number) -> Implementation:
    """A number that the calendar knows: SQLite's is ours, Gregorian throughout."""

    def implementation(_writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
        number = f"CAST(strftime('{code}', {_seconds(operands[0])}, 'unixepoch') AS INTEGER)"
        return f"({adjust(number)})"

    return implementation


def _weekday(*, sunday: bool) -> Implementation:
    def implementation(_writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
        (when,) = operands
        day = when.sql if when.type.kind is Kind.DATE else day_sql(when.sql)
        since_monday = f"({day} + {-_FIRST_DAY})"
        return f"(({since_monday} + 1) % 7)" if sunday else f"({since_monday} % 7 + 1)"

    return implementation


def _clock(unit: int, modulus: int) -> Implementation:
    return lambda _writer, _call, operands: f"({_since_year_one(operands[0].sql)} / {unit} % {modulus})"


def _cut(unit: int) -> Implementation:
    """The beginning of a unit of fixed length."""
    return lambda _writer, _call, operands: (
        f"({_since_year_one(operands[0].sql)} / {unit} * {unit} - {-_FIRST})"
    )


def _start_of(modifier: str) -> Implementation:
    return lambda _writer, _call, operands: (
        f"(CAST(strftime('%s', {_seconds(operands[0])}, 'unixepoch', '{modifier}') AS INTEGER) * {_SECOND})"
    )


def _quarter(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    def body(moment: str) -> str:
        seconds = _seconds(Operand(moment, operands[0].type))
        month = f"CAST(strftime('%m', {seconds}, 'unixepoch') AS INTEGER)"
        back = f"printf('-%d months', ({month} - 1) % 3)"
        start = f"strftime('%s', {seconds}, 'unixepoch', 'start of month', {back})"
        return f"CAST({start} AS INTEGER) * {_SECOND}"

    return writer.let(operands, body)


DATES: dict[str, Implementation] = {
    "+": _plus,
    "-": _minus,
    "add_microseconds": _add_microseconds,
    "tumble": _tumble,
    "extract_year": _calendar("%Y"),
    "extract_quarter": _calendar("%m", adjust=lambda month: f"({month} + 2) / 3"),
    "extract_month": _calendar("%m"),
    "extract_day": _calendar("%d"),
    "extract_dow": _weekday(sunday=True),
    "extract_isodow": _weekday(sunday=False),
    "extract_doy": _calendar("%j"),
    "extract_hour": _clock(3600 * _SECOND, 24),
    "extract_minute": _clock(60 * _SECOND, 60),
    # A DECIMAL with six digits after the point is stored as its microseconds.
    "extract_second": _clock(1, 60 * _SECOND),
    "extract_epoch": lambda _writer, _call, operands: operands[0].sql,
    "date_trunc_second": _cut(_SECOND),
    "date_trunc_minute": _cut(60 * _SECOND),
    "date_trunc_hour": _cut(3600 * _SECOND),
    "date_trunc_day": _cut(_DAY),
    "date_trunc_week": _cut(7 * _DAY),
    "date_trunc_month": _start_of("start of month"),
    "date_trunc_quarter": _quarter,
    "date_trunc_year": _start_of("start of year"),
}
