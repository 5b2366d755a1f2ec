"""Digests: what rows add up to in Python, before they are stored, is what SQLite finds in its tables."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

import pytest

from everview.engines.sqlite.rows import digests
from everview.engines.sqlite.rows.dots import dot
from everview.language.types import BIGINT, BLOB, BOOLEAN, DOUBLE, TEXT, Field, decimal_type

_VALUES: list[tuple[Any, list[Any]]] = [
    (BIGINT, [0, 1, -1, 2**63 - 1, -(2**63), digests.PRIME]),
    (BOOLEAN, [0, 1]),
    (DOUBLE, [0.0, -1.5, float("inf"), 1e300, "NaN"]),
    (TEXT, ["", "a", "žluť", "0"]),
    (BLOB, [b"", b"\x00", b"\xff" * 9]),
    (decimal_type(38, 2), ["1" + "0" * 38, "0" + "9" * 38]),
]


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_columns_add_up_to_what_their_stored_rows_do(nullable: bool, count: int) -> None:
    rng = random.Random(count)
    schema = [Field(f"f{at}", kind, nullable=nullable) for at, (kind, _) in enumerate(_VALUES)]
    choices = [[*values, None] if nullable else values for _, values in _VALUES]
    columns: list[list[Any]] = [[rng.choice(values) for _ in range(count)] for values in choices]
    columns.append([rng.randrange(1, 2**62) for _ in range(count)])  # a kind's own column
    dots = [dot(3, number) for number in rng.sample(range(1, 2**39), count)]
    salt = digests.salt_of("an incarnation")
    connection = sqlite3.connect(":memory:")
    digests.register(connection)
    names = [f"c{at}" for at in range(len(columns))]
    connection.execute("CREATE TABLE sites (number, salt)")
    connection.execute("INSERT INTO sites VALUES (3, ?)", (salt,))
    connection.execute(f"CREATE TABLE r (dot, {', '.join(names)})")
    marks = ", ".join("?" * (len(names) + 1))
    connection.executemany(f"INSERT INTO r VALUES ({marks})", zip(dots, *columns, strict=True))
    term = digests.term(schema, names[:-1], names[-1:])
    stored = connection.execute(digests.sums(f"SELECT dot, {term} AS term FROM r", "sites")).fetchone()
    assert digests.sum_columns(schema, columns, dots, salt) == stored
    connection.close()
