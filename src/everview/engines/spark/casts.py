r"""CAST in Spark SQL, agreeing with `language.casts` value by value; what cannot be cast is NULL.

Texts are first matched by a regular expression of ours, because Spark reads more than PostgreSQL does
('1d' as a number, '2026' as a date).
"""

from __future__ import annotations

from collections.abc import Callable

from everview.engines.spark.by_python import python_call
from everview.engines.spark.patterns import folded
from everview.engines.spark.text import (
    FIRST_DAY,
    FIRST_MICROSECOND,
    LAST_DAY,
    LAST_MICROSECOND,
    Names,
    quoted,
    within,
)
from everview.engines.spark.types import sql_type
from everview.language.casts import can_cast
from everview.language.types import TEXT, Kind, Type

__all__ = ["CASTS", "cast_text"]

Emit = Callable[[Names, str, Type, Type], str]

_SPACE = r"[ \t\n\r\x0B\f]*"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DATE = r"([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})"
_TIME = (
    r"(?:[ T]\s*([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?"
    r"(?:\s*(?:[Zz]|([+-])([0-9]{1,2})(?::?([0-9]{2}))?))?)?"
)
_TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
_FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")


def cast_text(names: Names, operand: str, source: Type, target: Type) -> str:
    """The text of CAST(operand AS target)."""
    if source == target:
        return operand
    return CASTS[source.kind, target.kind](names, operand, source, target)


def _plain(_names: Names, operand: str, _source: Type, target: Type) -> str:
    return f"CAST({operand} AS {sql_type(target)})"


def _tried(_names: Names, operand: str, _source: Type, target: Type) -> str:
    return f"try_cast({operand} AS {sql_type(target)})"


def _part(text: str, expression: str, group: int = 1) -> str:
    """What the group matched, '' if nothing did."""
    return f"regexp_extract({text}, {quoted(_SPACED.format(expression))}, {group})"


_SPACED = r"\A" + _SPACE + "{}" + _SPACE + r"\z"


def _text_to_boolean(names: Names, operand: str, _source: Type, _target: Type) -> str:
    def listed(words: tuple[str, ...]) -> str:
        return ", ".join(map(quoted, words))

    word = folded(_part(operand, "([A-Za-z01]+)"))
    return names.let(
        (word,),
        lambda w: (
            f"CASE WHEN {w} IN ({listed(_TRUE)}) THEN true WHEN {w} IN ({listed(_FALSE)}) THEN false END"
        ),
    )


def _text_to_bigint(_names: Names, operand: str, _source: Type, _target: Type) -> str:
    return f"try_cast(nullif({_part(operand, '([+-]?[0-9]{1,999})')}, '') AS BIGINT)"


def _text_to_decimal(_names: Names, operand: str, _source: Type, target: Type) -> str:
    # Java would write out the zeros of 1e-999999999: an exponent of many digits is cut to one that has
    # the same effect.
    number = f"nullif({_part(operand, f'({_NUMBER})')}, '')"
    short = f"regexp_replace({number}, {quoted('([eE][+-]?)0*[0-9]{5,}$')}, {quoted('$19999')})"
    return f"try_cast({short} AS {sql_type(target)})"


def _text_to_double(names: Names, operand: str, _source: Type, _target: Type) -> str:
    special = r"[nN][aA][nN]|[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"
    some_digit = quoted(r"\A[+-]?[0.]*[1-9]")

    def read(text: str) -> str:
        number = f"try_cast({text} AS DOUBLE)"
        return (
            f"CASE WHEN lower({text}) = 'nan' THEN double('nan') "
            f"WHEN lower({text}) LIKE '-inf%' THEN double('-inf') "
            f"WHEN lower({text}) LIKE '%inf%' THEN double('inf') "
            f"WHEN abs({number}) = double('inf') THEN NULL "
            f"WHEN {number} = 0 AND {text} RLIKE {some_digit} THEN NULL "
            f"ELSE {number} + 0.0D END"
        )

    return names.let((f"nullif({_part(operand, f'({special}|{_NUMBER})')}, '')",), read)


def _text_to_blob(names: Names, operand: str, _source: Type, _target: Type) -> str:
    hexadecimal = quoted(r"\A\\x(?:[0-9a-fA-F]{2})*\z")
    return names.let(
        (operand,), lambda s: f"CASE WHEN {s} RLIKE {hexadecimal} THEN unhex(substring({s}, 3)) END"
    )


def _days(text: str) -> str:
    day = f"try_cast(nullif({_part(text, _DATE + _TIME, 1)}, '') AS DATE)"
    return within(f"CAST(unix_date({day}) AS BIGINT)", FIRST_DAY, LAST_DAY)


def _clock(text: str) -> tuple[str, str]:
    """The microseconds since midnight that the text's time names, and how far its clock is ahead."""

    def number(group: int) -> str:
        return f"coalesce(CAST(nullif({_part(text, _DATE + _TIME, group)}, '') AS BIGINT), 0L)"

    hour, minute, second = number(2), number(3), number(4)
    fraction = f"CAST(rpad({_part(text, _DATE + _TIME, 5)}, 6, '0') AS BIGINT)"
    sign = f"CASE {_part(text, _DATE + _TIME, 6)} WHEN '-' THEN -1L ELSE 1L END"
    hours = within(number(7), 0, 15)
    ahead = f"{sign} * ({hours} * 3600 + {number(8)} * 60) * 1000000L"
    since = f"({within(minute, 0, 59)} * 60 + {within(second, 0, 60)}) * 1000000L + {fraction}"
    # 24:00:00 is the next midnight, and nothing lies past it within the day.
    return (
        f"CASE WHEN {hour} < 24 OR ({hour} = 24 AND {since} = 0) THEN {hour} * 3600000000L + {since} END",
        ahead,
    )


def _text_to_timestamp(names: Names, operand: str, _source: Type, _target: Type) -> str:
    def read(text: str) -> str:
        since, ahead = _clock(text)
        moment = f"{_days(text)} * 86400000000L + {since} - {ahead}"
        return f"timestamp_micros({within(moment, FIRST_MICROSECOND, LAST_MICROSECOND)})"

    return names.let((operand,), read)


def _text_to_date(names: Names, operand: str, _source: Type, _target: Type) -> str:
    """The day of the clock time that the text names, past midnight if it says 24:00, its zone dropped."""

    def read(text: str) -> str:
        since, ahead = _clock(text)
        day = f"{_days(text)} + ({since} + 0 * {ahead}) div 86400000000L"
        return f"date_from_unix_date(CAST({within(day, FIRST_DAY, LAST_DAY)} AS INT))"

    return names.let((operand,), read)


def _decimal_to_bigint(_names: Names, operand: str, source: Type, _target: Type) -> str:
    whole = min(source.digits[0] + 1, 38)
    return f"try_cast(CAST({operand} AS DECIMAL({whole},0)) AS BIGINT)"


def _double_to_decimal(names: Names, operand: str, _source: Type, target: Type) -> str:
    return _text_to_decimal(names, python_call("digits", operand), TEXT, target)


CASTS: dict[tuple[Kind, Kind], Emit] = {
    (Kind.BOOLEAN, Kind.BIGINT): _plain,
    (Kind.BOOLEAN, Kind.TEXT): _plain,
    (Kind.BIGINT, Kind.BOOLEAN): lambda _n, operand, _s, _t: f"({operand} <> 0)",
    (Kind.BIGINT, Kind.DECIMAL): _tried,
    (Kind.BIGINT, Kind.DOUBLE): _plain,
    (Kind.BIGINT, Kind.TEXT): _plain,
    (Kind.DECIMAL, Kind.BIGINT): _decimal_to_bigint,
    (Kind.DECIMAL, Kind.DECIMAL): _tried,
    (Kind.DECIMAL, Kind.DOUBLE): _plain,
    (Kind.DECIMAL, Kind.TEXT): _plain,
    # Spark takes 2^63 for a BIGINT and makes it the greatest one.
    (Kind.DOUBLE, Kind.BIGINT): lambda _n, operand, _s, _t: (
        f"try_cast(nullif(rint({operand}), 9223372036854775808D) AS BIGINT)"
    ),
    (Kind.DOUBLE, Kind.DECIMAL): _double_to_decimal,
    # Java's digits of a DOUBLE are not always the shortest.
    (Kind.DOUBLE, Kind.TEXT): lambda _n, operand, _s, _t: python_call("text", operand),
    (Kind.BLOB, Kind.TEXT): lambda _n, operand, _s, _t: rf"concat('\\x', lower(hex({operand})))",
    (Kind.DATE, Kind.TIMESTAMP): _plain,
    (Kind.DATE, Kind.TEXT): _plain,
    (Kind.TIMESTAMP, Kind.DATE): _plain,
    (Kind.TIMESTAMP, Kind.TEXT): _plain,
    (Kind.TEXT, Kind.BOOLEAN): _text_to_boolean,
    (Kind.TEXT, Kind.BIGINT): _text_to_bigint,
    (Kind.TEXT, Kind.DECIMAL): _text_to_decimal,
    (Kind.TEXT, Kind.DOUBLE): _text_to_double,
    (Kind.TEXT, Kind.BLOB): _text_to_blob,
    (Kind.TEXT, Kind.DATE): _text_to_date,
    (Kind.TEXT, Kind.TIMESTAMP): _text_to_timestamp,
}
"""Every pair of kinds that can be cast, each with its text."""

_POSSIBLE = {
    (source, target)
    for source in Kind
    for target in Kind
    if Kind.UNKNOWN not in (source, target)
    and (source is not target or source is Kind.DECIMAL)
    and can_cast(
        Type(source, 1, 0) if source is Kind.DECIMAL else Type(source),
        Type(target, 1, 0) if target is Kind.DECIMAL else Type(target),
    )
}
if set(CASTS) != _POSSIBLE:
    raise AssertionError(f"casts without an answer: {set(CASTS) ^ _POSSIBLE}")
