"""Digests: what a partition's live rows add up to, so that replicas can check that they are equal.

A digest is two sums modulo a prime, one of the rows' dots and one of dots and values. Rows may come and go in
any order, and SQLite adds up itself: integers by arithmetic, other values by their CRC. It finds what went
wrong, not what was made to look right; that takes signatures.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any
from zlib import crc32

from everview.engines.sqlite.rows.dots import NUMBERS, SHIFT
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.types import Field

PRIME = 2_147_483_647
"""No product of two rests is above 2^62, and a sum has room for four billion of them."""

_FACTORS = 48_271  # a generator of the prime's numbers: the columns' factors are its powers
_DOUBLE = struct.Struct("<d")


def register(connection: sqlite3.Connection) -> None:
    """Let a connection compute the CRC of texts, blobs and doubles."""
    connection.create_function("everview_crc", 1, _crc, deterministic=True)


def _crc(value: str | bytes | float | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        return crc32(value.encode())
    return crc32(value if isinstance(value, bytes) else _DOUBLE.pack(value))


def salt_of(incarnation: str) -> int:
    """Return what the rows of an incarnation are multiplied by."""
    return int.from_bytes(blake2b(incarnation.encode(), digest_size=8).digest()) % (PRIME - 2) + 1


def term(schema: Sequence[Field], cells: Sequence[str], extras: Sequence[str]) -> str:
    """Return the SQL term of a row's values: a number below the prime, or NULL of a row without columns.

    NULLs count for nothing, and values and a kind's own columns have different factors. So a row's term is
    the same under a program with more columns at the end.
    """
    parts = {place + 1: _rest(*pair) for place, pair in enumerate(zip(schema, cells, strict=True))}
    parts |= {-place - 1: f"{extra} % {PRIME}" for place, extra in enumerate(extras)}
    weighed = [f"({part}) * {pow(_FACTORS, place, PRIME)} % {PRIME}" for place, part in parts.items()]
    return f"(({' + '.join(weighed) or '0'}) % {PRIME})"


def _rest(field: Field, cell: str) -> str:
    """A value as a number from 0 to twice the prime; NULL is −1, which no rest is."""
    if column_type(field.type) == "INTEGER":
        found = f"{cell} % {PRIME} + {PRIME}"
    else:
        found = f"everview_crc({cell}) % {PRIME}"
    return f"ifnull({found}, -1) + 1" if field.nullable else found


def sum_columns(
    schema: Sequence[Field], columns: Sequence[Sequence[Any]], dots: Sequence[int], salt: int
) -> tuple[int, int]:
    """Return both sums over rows of one site that are not stored yet, given as columns.

    They are what `sums` finds of the terms of `term`: a remainder of a sum may be taken once at the end.
    """
    numbers = sum(dots) - len(dots) * (dots[0] >> SHIFT << SHIFT) if dots else 0
    terms, width = 0, len(schema)
    for place, column in enumerate(columns):
        factor = place + 1 if place < width else width - place - 1
        total = _total(schema[place], column) if place < width else sum(column)
        terms += total * pow(_FACTORS, factor, PRIME)
    return numbers * salt % PRIME, (numbers + terms) * salt % PRIME


def _total(field: Field, column: Sequence[Any]) -> int:
    """What `_rest` adds up to in a column, but for multiples of the prime."""
    count = 0
    if field.nullable:
        column = [value for value in column if value is not None]
        count = len(column)
    kind = column_type(field.type)
    if kind == "INTEGER":
        integers: Sequence[int] = column
        return sum(integers) + count
    rests = map(crc32, map(str.encode, column)) if kind == "TEXT" else filter(None, map(_crc, column))
    return sum(rests) + count


def sums(rows: str, sites: str) -> str:
    """Return the SELECT of both sums over rows, a SELECT of `dot` and `term`."""
    salted = (
        f"SELECT (d.dot & {NUMBERS}) % {PRIME} * s.salt % {PRIME} AS x, "
        f"((d.dot & {NUMBERS}) % {PRIME} + d.term) % {PRIME} * s.salt % {PRIME} AS y "
        f"FROM ({rows}) AS d CROSS JOIN {sites} AS s ON s.number = d.dot >> {SHIFT}"
    )
    return f"SELECT ifnull(sum(x), 0) % {PRIME}, ifnull(sum(y), 0) % {PRIME} FROM ({salted})"
