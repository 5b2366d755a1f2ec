"""Stored forms: there and back, in order, as literals, and shown to any client."""

import math
import random
import sqlite3
import struct

import pytest
from tests.engines.sqlite.edge_values import TYPES, draw, edges
from tests.engines.sqlite.harness import same

from everview.engines.sqlite.scalars.expressions import sort_key_sql
from everview.engines.sqlite.scalars.literals import literal_sql, text_literal
from everview.engines.sqlite.scalars.public import public_sql
from everview.engines.sqlite.scalars.storage import (
    column_type,
    from_stored,
    load_rows,
    load_value,
    store_rows,
    store_value,
    to_stored,
)
from everview.language.aggregates import SortKey
from everview.language.casts import to_text
from everview.language.expressions import Column
from everview.language.order import order_key
from everview.language.types import BIGINT, BLOB, BOOLEAN, DOUBLE, TEXT, TIMESTAMP, Kind


def sample(kind, count=300):
    rng = random.Random(str(kind))
    return [*edges(kind), *(draw(rng, kind) for _ in range(count))]


def table(kind, values, *, declared=True):
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, c {column_type(kind) if declared else ''})")
    rows = [(i, value) for i, (value,) in enumerate(store_rows([kind], [(v,) for v in values]))]
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    return connection


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_there_and_back(kind, declared):
    values = sample(kind)
    found = table(kind, values, declared=declared).execute("SELECT c FROM t ORDER BY id").fetchall()
    loaded = load_rows([kind], found)
    assert all(same(value, back) for value, (back,) in zip(values, loaded, strict=True))
    assert all(same(value, load_value(store_value(value, kind), kind)) for value in values)


@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_sorted_by_sqlite_is_sorted_by_us(kind, descending, nulls_first):
    values = sample(kind)
    key = sort_key_sql(SortKey(Column(0, kind), descending, nulls_first), ["t.c"])
    found = load_rows([kind], table(kind, values).execute(f"SELECT c FROM t ORDER BY {key}").fetchall())
    present = sorted((v for v in values if v is not None), key=order_key, reverse=descending)
    nulls = [None] * values.count(None)
    expected = nulls + present if nulls_first else present + nulls
    assert [repr(value) for (value,) in found] == [repr(value) for value in expected]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_equal_when_stored_is_equal(kind):
    values = [value for value in sample(kind) if value is not None]
    found = table(kind, values).execute("SELECT count(DISTINCT c) FROM t").fetchone()
    assert found == (len({order_key(value) for value in values}),)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_literals_are_the_stored_values(kind):
    connection = sqlite3.connect(":memory:")
    for value in sample(kind):
        text = literal_sql(value, kind)
        assert same(value, load_value(connection.execute(f"SELECT {text}").fetchone()[0], kind)), text
        if isinstance(value, int | float) and value == value:
            [(found,)] = connection.execute(f"SELECT 0 - {text} - {text} = -2 * {text}").fetchall()
            assert found in (1, None), text  # Infinity minus Infinity is NULL


def test_doubles_of_any_bits_are_read_back_bit_for_bit():
    rng = random.Random(7)
    connection = sqlite3.connect(":memory:")
    for _ in range(3000):
        (value,) = struct.unpack("<d", rng.randbytes(8))
        if math.isfinite(value) and value:
            [(found,)] = connection.execute(f"SELECT {literal_sql(value, DOUBLE)}").fetchall()
            assert repr(found) == repr(value)


def test_a_text_with_the_zero_character_is_still_one_literal():
    connection = sqlite3.connect(":memory:")
    assert connection.execute(f"SELECT {text_literal(chr(0) + 'a')}, 1").fetchone() == ("\0a", 1)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_any_client_sees_what_people_expect(kind):
    values = sample(kind)
    found = table(kind, values).execute(f"SELECT {public_sql(kind, 't.c')} FROM t ORDER BY id").fetchall()
    for value, (shown,) in zip(values, found, strict=True):
        assert same(expected_public(value, kind), shown)


def expected_public(value, kind):
    if value is None:
        return None
    match kind.kind:
        case Kind.BOOLEAN:
            return int(value)
        case Kind.DOUBLE if math.isnan(value):
            return "NaN"
        case Kind.DATE | Kind.DECIMAL:
            return to_text(value)
        case Kind.TIMESTAMP:
            return f"{value.year:04}" + value.strftime("-%m-%d %H:%M:%S.%f")
        case _:
            return value


def test_rows_that_need_no_change_pass_untouched():
    rows = [(1, "a", b"b", None), (2, "c", b"d", 1.5)]
    types = [BIGINT, TEXT, BLOB, DOUBLE]
    assert store_rows(types, rows) is rows
    assert load_rows(types, rows) is rows
    assert [to_stored(kind) for kind in (BIGINT, TEXT, BLOB, BOOLEAN)] == [None] * 4
    assert from_stored(BIGINT) is None
    assert to_stored(TIMESTAMP) is not None
    with_nan = store_rows(types, [*rows, (3, "", b"", math.nan)])
    assert with_nan[2] == (3, "", b"", "NaN")
