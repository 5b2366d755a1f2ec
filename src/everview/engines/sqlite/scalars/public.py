"""Stored values as people expect to see them, in plain SQLite: any client can read the result.

DATE is `YYYY-MM-DD`, TIMESTAMP `YYYY-MM-DD HH:MM:SS.ffffff` in UTC, DECIMAL a text with its scale, NaN
the text `NaN`, BOOLEAN 0 or 1. No function of ours is called, because another client does not have it.
"""

from __future__ import annotations

from typing import assert_never

from everview.engines.sqlite.scalars.storage import is_long
from everview.language.types import Kind, Type

__all__ = ["clock_sql", "fraction_sql", "public_sql"]

_YEAR_ONE = 62_135_596_800
"""Seconds from 0001-01-01 to 1970-01-01: added before dividing, it makes every moment positive."""

_CHUNK = 18


def public_sql(target: Type, column: str) -> str:
    """An expression that shows what `column`, the SQL of a stored value, holds."""
    match target.kind:
        case Kind.BOOLEAN | Kind.BIGINT | Kind.DOUBLE | Kind.TEXT | Kind.BLOB:
            return column
        case Kind.DATE:
            return f"strftime('%Y-%m-%d', {column} * 86400, 'unixepoch')"
        case Kind.TIMESTAMP:
            return f"{clock_sql(column)} || printf('.%06d', {fraction_sql(column)})"
        case Kind.DECIMAL:
            _, scale = target.digits
            return _long(target, column) if is_long(target) else _short(scale, column)
        case Kind.UNKNOWN:
            raise AssertionError("a column has a known type")
        case _:
            assert_never(target.kind)


def clock_sql(microseconds: str) -> str:
    """Date and time of day, to whole seconds, of a stored TIMESTAMP."""
    seconds = f"({microseconds} + {_YEAR_ONE}000000) / 1000000 - {_YEAR_ONE}"
    return f"strftime('%Y-%m-%d %H:%M:%S', {seconds}, 'unixepoch')"


def fraction_sql(microseconds: str) -> str:
    """The microseconds after the whole second of a stored TIMESTAMP."""
    return f"({microseconds} + {_YEAR_ONE}000000) % 1000000"


def _short(scale: int, column: str) -> str:
    if scale == 0:
        return f"CAST({column} AS TEXT)"
    unit = 10**scale
    shown = f"printf('%d.%0{scale}d', abs({column}) / {unit}, abs({column}) % {unit})"
    return f"CASE WHEN {column} < 0 THEN '-' || {shown} WHEN {column} >= 0 THEN {shown} END"


def _long(target: Type, column: str) -> str:
    digits = sum(target.digits)
    chunks = [(start, min(_CHUNK, digits - start)) for start in range(0, digits, _CHUNK)]
    complement = " || ".join(
        f"printf('%0{size}d', {10**size - 1} - CAST(substr({column}, {start + 2}, {size}) AS INTEGER))"
        for start, size in chunks
    )
    positive, negative = (_pointed(target, text) for text in (f"substr({column}, 2)", f"({complement})"))
    return f"CASE WHEN {column} >= '1' THEN {positive} WHEN {column} < '1' THEN '-' || {negative} END"


def _pointed(target: Type, digits: str) -> str:
    """A text of fixed width with its point set and its leading zeros gone."""
    whole, scale = target.digits
    before = f"coalesce(nullif(ltrim(substr({digits}, 1, {whole}), '0'), ''), '0')" if whole else "'0'"
    return f"{before} || '.' || substr({digits}, {whole + 1})" if scale else before
