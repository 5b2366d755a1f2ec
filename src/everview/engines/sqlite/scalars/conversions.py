"""CAST, pair by pair: plain SQL where it says exactly what `language.casts` says, else that very code."""

from __future__ import annotations

from everview.engines.sqlite.scalars.arithmetic import nearest_even_sql
from everview.engines.sqlite.scalars.dates import day_sql
from everview.engines.sqlite.scalars.decimals import fitted_sql, half_away_sql, key_sql, rescaled_sql
from everview.engines.sqlite.scalars.fragments import Operand, Writer
from everview.engines.sqlite.scalars.public import clock_sql, fraction_sql, public_sql
from everview.engines.sqlite.scalars.storage import SHORT_DIGITS, is_long
from everview.language.casts import cast_fails
from everview.language.expressions import Cast
from everview.language.types import Kind, Type

__all__ = ["cast_sql", "integer_behind"]

_EXACT_WHOLE = 1 << 53
"""Up to here every whole number is a double."""


def cast_sql(writer: Writer, cast: Cast, operand: Operand) -> str:
    """The SQL of a cast."""
    source, target = operand.type, cast.type
    if source == target:
        return operand.sql
    match source.kind, target.kind:
        case (Kind.BOOLEAN, Kind.BIGINT):
            return operand.sql
        case (Kind.BIGINT, Kind.BOOLEAN):
            return f"({operand.sql} <> 0)"
        case (Kind.BIGINT, Kind.DOUBLE):
            return f"CAST({operand.sql} AS REAL)"
        case (Kind.DATE, Kind.TIMESTAMP):
            return f"({operand.sql} * 86400000000)"
        case (Kind.TIMESTAMP, Kind.DATE):
            return day_sql(operand.sql)
        case (Kind.BIGINT | Kind.DECIMAL, Kind.DECIMAL):
            return _to_decimal(writer, cast, operand)
        case (Kind.DECIMAL, Kind.BIGINT) if not is_long(source):
            return writer.let([operand], lambda a: half_away_sql(a, source.digits[1]))
        case (Kind.DECIMAL, Kind.DOUBLE) if not is_long(source):
            return _short_to_double(writer, cast, operand)
        case (Kind.DOUBLE, Kind.BIGINT):
            return _double_to_bigint(writer, operand)
        case (Kind.TEXT, Kind.DATE):
            return _text_to_date(writer, cast, operand)
        case (Kind.TEXT, Kind.BIGINT):
            return _text_to_bigint(writer, cast, operand)
        case (_, Kind.TEXT) if source.kind is not Kind.DOUBLE:
            return _to_text(writer, operand)
        case _:
            return writer.cast(cast, operand.sql)


def _to_decimal(writer: Writer, cast: Cast, operand: Operand) -> str:
    source, target = operand.type, cast.type
    if is_long(source) or is_long(target):
        return _through_keys(writer, cast, operand)
    scale, wanted = source.digits[1], target.digits[1]
    if wanted >= scale:
        rescaled = f"({rescaled_sql(operand.sql, wanted - scale)})"
    else:
        rescaled = writer.let([operand], lambda a: half_away_sql(a, scale - wanted))
    if not cast_fails(source, target):
        return rescaled
    return writer.let([Operand(rescaled, target)], lambda a: fitted_sql(writer, a, target, "CAST"))


def _through_keys(writer: Writer, cast: Cast, operand: Operand) -> str:
    """A cast that only adds digits is a change of the key's text; the rest is done in Python."""
    source, target = operand.type, cast.type
    (whole, scale), (target_whole, target_scale) = source.digits, target.digits
    before, after = target_whole - whole, target_scale - scale
    if not is_long(target) or before < 0 or after < 0:
        return writer.cast(cast, operand.sql)
    if is_long(source):
        return writer.let(
            [operand],
            lambda a: (
                f"CASE WHEN {a} >= '1' THEN '1{'0' * before}' || substr({a}, 2) || '{'0' * after}' "
                f"WHEN {a} < '1' THEN '0{'9' * before}' || substr({a}, 2) || '{'9' * after}' END"
            ),
        )
    wide = sum(source.digits) > SHORT_DIGITS  # a BIGINT may have a digit more
    return writer.let(
        [operand],
        lambda a: key_sql(
            a, target_whole + target_scale, shift=after, otherwise=writer.cast(cast, a) if wide else None
        ),
    )


def integer_behind(operand: Operand, target: Type) -> tuple[str, int] | None:
    """What `Operand.integer` is for a cast of this operand: only if it does nothing but add digits."""
    if target.kind is not Kind.DECIMAL or operand.type.kind not in (Kind.BIGINT, Kind.DECIMAL):
        return None
    if is_long(operand.type) or cast_fails(operand.type, target):
        return None
    scale = operand.type.digits[1]
    return (operand.sql, scale) if scale <= target.digits[1] else None


def _short_to_double(writer: Writer, cast: Cast, operand: Operand) -> str:
    """Both sides of the division are doubles exactly, so it rounds once, to the nearest."""
    unit = 10 ** operand.type.digits[1]
    return writer.let(
        [operand],
        lambda a: (
            f"CASE WHEN {a} BETWEEN -{_EXACT_WHOLE} AND {_EXACT_WHOLE} THEN {a} / {unit}.0 "
            f"ELSE {writer.cast(cast, a)} END"
        ),
    )


def _double_to_bigint(writer: Writer, operand: Operand) -> str:
    small, limit = f"{1 << 52}.0", f"{1 << 63}.0"
    failure = writer.fail("DOUBLE out of range for BIGINT")
    return writer.let(
        [operand],
        lambda a: (
            f"CASE WHEN {a} > -{small} AND {a} < {small} THEN CAST({nearest_even_sql(a)} AS INTEGER) "
            f"WHEN {a} >= -{limit} AND {a} < {limit} THEN CAST({a} AS INTEGER) "
            f"WHEN {a} IS NOT NULL THEN {failure} END"
        ),
    )


def _text_to_bigint(writer: Writer, cast: Cast, operand: Operand) -> str:
    return writer.let(
        [operand],
        lambda a: (
            f"CASE WHEN length({a}) BETWEEN 1 AND {SHORT_DIGITS} AND {a} NOT GLOB '*[^0-9]*' "
            f"THEN CAST({a} AS INTEGER) ELSE {writer.cast(cast, a)} END"
        ),
    )


def _text_to_date(writer: Writer, cast: Cast, operand: Operand) -> str:
    """ISO dates are read by SQLite, which moves a day that is not in its month to the next one."""
    shape = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
    return writer.let(
        [operand],
        lambda a: (
            f"CASE WHEN {a} GLOB '{shape}' AND {a} >= '0001' AND date({a}, '+0 days') = {a} "
            f"THEN CAST(strftime('%s', {a}) AS INTEGER) / 86400 ELSE {writer.cast(cast, a)} END"
        ),
    )


def _to_text(writer: Writer, operand: Operand) -> str:
    match operand.type.kind:
        case Kind.BOOLEAN:
            return f"(CASE {operand.sql} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END)"
        case Kind.BIGINT:
            return f"CAST({operand.sql} AS TEXT)"
        case Kind.BLOB:
            # hex(NULL) is the empty text.
            return writer.let(
                [operand], lambda a: f"CASE WHEN {a} IS NOT NULL THEN '\\x' || lower(hex({a})) END"
            )
        case Kind.TIMESTAMP:
            return writer.let([operand], _timestamp_to_text)
        case _:
            return writer.let([operand], lambda a: public_sql(operand.type, a))


def _timestamp_to_text(moment: str) -> str:
    """As PostgreSQL writes it: without zeros at the end of the fraction."""
    fraction = fraction_sql(moment)
    shown = f"rtrim(printf('.%06d', {fraction}), '0')"
    return f"{clock_sql(moment)} || CASE {fraction} WHEN 0 THEN '' ELSE {shown} END"
