"""A tuple's id: frozen values, an implementation of its own from the specification, and what must hold."""

import datetime as dt
import hashlib
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everview as ev
from everview.language.identity import tuple_id
from everview.language.values import check_rows

TEXT = """
CREATE TABLE every_type (b BOOLEAN, i BIGINT, f DOUBLE, n DECIMAL(30,4), t TEXT, x BLOB, d DATE, s TIMESTAMP);
CREATE TABLE pair (a TEXT, b TEXT);
CREATE TABLE other (a TEXT, b TEXT);
CREATE TABLE turned (b TEXT, a TEXT);
CREATE TABLE "Mixed Ü" ("é" BIGINT, "Z" BIGINT);
"""
PROGRAM = ev.Program.parse(TEXT)
NOON = dt.datetime(2024, 2, 29, 12, 30, 0, 1, tzinfo=dt.UTC)


def independent(relation, cells):
    """The specification once more: cells are (column, type byte, value as bytes), NULLs left out."""

    def part(text):
        return len(text).to_bytes(4, "big") + text

    message = part(relation.encode())
    for name, tag, value in sorted(cells, key=lambda cell: cell[0].encode()):
        message += part(name.encode()) + tag.encode() + part(value)
    return hashlib.sha256(message).digest()[:16].hex()


def number(value):
    return value.to_bytes(8, "big", signed=True)


GOLDEN = [
    ("every_type", {}, [], "83dc403fa2859bcbf788f55cf193b582"),
    ("every_type", {"b": True}, [("b", "b", b"\x01")], "6ad78b80b9d44a5713f4ab7260402eaa"),
    ("every_type", {"b": False}, [("b", "b", b"\x00")], "d11155bba3cb15902995e95305e9ed9f"),
    ("every_type", {"i": -2}, [("i", "i", b"\xff" * 7 + b"\xfe")], "76d42e94f3d48f72b51ab9e30bfe3a8f"),
    ("every_type", {"i": 2**63 - 1}, [("i", "i", b"\x7f" + b"\xff" * 7)], "b864f7c7dec7e7c5650ecacae08b9344"),
    ("every_type", {"f": 1.5}, [("f", "f", b"\x3f\xf8" + bytes(6))], "9569776676af6148855b5720ce811d58"),
    ("every_type", {"f": -0.0}, [("f", "f", bytes(8))], "e879636d266c6b0bf4038009211cc4ee"),
    ("every_type", {"f": math.nan}, [("f", "f", b"\x7f\xf8" + bytes(6))], "1eaa898b885de280fe3a035986823264"),
    (
        "every_type",
        {"f": -math.inf},
        [("f", "f", b"\xff\xf0" + bytes(6))],
        "18d088280611d89b723dc34d64e4a3f6",
    ),
    ("every_type", {"n": Decimal("-12.50")}, [("n", "n", b"-12.5")], "d4ae00511b49fc8eb913a4d0a4a185c8"),
    ("every_type", {"n": 1000}, [("n", "n", b"1000")], "f889d14c9fc8b60a70769d50f4e60727"),
    ("every_type", {"n": Decimal("-0.000")}, [("n", "n", b"0")], "391b3ed2dba557387d438272d0f13d9c"),
    ("every_type", {"n": Decimal("0.0001")}, [("n", "n", b"0.0001")], "6aecb49116f77f93d6bb76d95a32e352"),
    ("every_type", {"t": ""}, [("t", "t", b"")], "a26f25e92b12b2542528743a5cbdb141"),
    ("every_type", {"t": "é𝄞"}, [("t", "t", "é𝄞".encode())], "dc3692cc43aa692e0400ac83b5b39781"),
    ("every_type", {"x": b"\x00\xff"}, [("x", "x", b"\x00\xff")], "e3fb55e8aadca02b51a4b81a04a1ff22"),
    (
        "every_type",
        {"d": dt.date(1969, 12, 31)},
        [("d", "d", number(-1))],
        "0790ace04210ae57c20ebeb8f47c02c2",
    ),
    (
        "every_type",
        {"d": dt.date(9999, 12, 31)},
        [("d", "d", number(2932896))],
        "b2c653c81943c06c3a946d1518f4c9a5",
    ),
    ("every_type", {"s": NOON}, [("s", "s", number(1709209800000001))], "f5064d80b51b586a0d8b09714485058f"),
    (
        "every_type",
        {"s": dt.datetime(1, 1, 1, tzinfo=dt.UTC)},
        [("s", "s", number(-62135596800000000))],
        "da6420b4039be4a6413f0ab2ad5373e2",
    ),
    (
        "every_type",
        {"i": 7, "t": "x", "b": True, "d": dt.date(1970, 1, 2)},
        [("i", "i", number(7)), ("t", "t", b"x"), ("b", "b", b"\x01"), ("d", "d", number(1))],
        "7ad5f74abe7aeb01f177f0a85e81c299",
    ),
    ("pair", {"a": "x", "b": "y"}, [("a", "t", b"x"), ("b", "t", b"y")], "669410ac546a92d2b20fb0745d390fce"),
    ("other", {"a": "x", "b": "y"}, [("a", "t", b"x"), ("b", "t", b"y")], "db9442129019b8f6f3921346db436657"),
    (
        "turned",
        {"a": "x", "b": "y"},
        [("a", "t", b"x"), ("b", "t", b"y")],
        "c1dfb27191577442f35011b3dc7fa1c0",
    ),
    ("pair", {"a": "xy"}, [("a", "t", b"xy")], "3643b4782b00c060a626bcca9dcc6913"),
    ("pair", {"b": "xy"}, [("b", "t", b"xy")], "a025af4f459b53f7fb3701be5a43eebb"),
    (
        "Mixed Ü",
        {"é": 1, "Z": 2},
        [("Z", "i", number(2)), ("é", "i", number(1))],
        "ee963190279d2f2b3f9b660edccdd523",
    ),
]


def id_of(name, values):
    relation = PROGRAM.relations[name]
    (row,) = check_rows(name, relation.schema, [values])
    return tuple_id(relation, row).hex()


@pytest.mark.parametrize(("name", "values", "cells", "frozen"), GOLDEN)
def test_golden_ids(name, values, cells, frozen):
    """The hexadecimal values are for ever: rows in stores of today are known by them tomorrow."""
    assert independent(name, cells) == frozen
    assert id_of(name, values) == frozen


def test_all_golden_ids_differ():
    assert len({frozen for *_, frozen in GOLDEN}) == len(GOLDEN)


def test_a_new_nullable_column_changes_no_id():
    before = ev.Program.parse("CREATE TABLE t (b BIGINT, a TEXT)").relations["t"]
    after = ev.Program.parse("CREATE TABLE t (z DATE, b BIGINT, aa BLOB, a TEXT)").relations["t"]
    assert tuple_id(before, (1, "x")) == tuple_id(after, (None, 1, None, "x"))
    assert tuple_id(before, (None, None)) == tuple_id(after, (None,) * 4)
    assert tuple_id(before, (1, "x")) != tuple_id(after, (None, 1, b"", "x"))


def nullable(strategy):
    return st.none() | strategy


ROWS = st.tuples(
    nullable(st.booleans()),
    nullable(st.integers(-2, 2) | st.integers(-(2**63), 2**63 - 1)),
    nullable(st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf]) | st.floats(width=64)),
    nullable(st.sampled_from([Decimal("1.0"), Decimal(1), Decimal("10E-1"), Decimal("-0"), Decimal(100)])),
    nullable(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3)),
    nullable(st.binary(max_size=3)),
    nullable(st.dates()),
    nullable(st.datetimes(timezones=st.none() | st.just(dt.UTC))),
)


@given(ROWS, ROWS)
def test_rows_are_equal_exactly_when_their_ids_are(one, other):
    relation = PROGRAM.relations["every_type"]
    first, second = check_rows(relation.name, relation.schema, [one, other])
    assert (first == second) == (tuple_id(relation, first) == tuple_id(relation, second))
    (again,) = check_rows(relation.name, relation.schema, [first])
    assert tuple_id(relation, again) == tuple_id(relation, first)
