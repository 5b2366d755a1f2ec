"""Values at the door: what fits, in which form, and the order of rows."""

import datetime as dt
import decimal
import enum
import functools
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import DataError
from everview.language.casts import CastError, cast_value, to_text
from everview.language.order import less_or_equal, sorted_rows
from everview.language.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    Field,
    Kind,
    Type,
    common_type,
    is_implicit,
)
from everview.language.values import NAN, UnfitError, check_rows, check_value

MONEY = Type(Kind.DECIMAL, 6, 2)
UTC_NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))


class Colour(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("value", "kind", "stored"),
    [
        (True, BOOLEAN, True),
        (-(2**63), BIGINT, -(2**63)),
        (Colour.RED, BIGINT, 3),
        (1.5, DOUBLE, 1.5),
        (3, DOUBLE, 3.0),
        (-0.0, DOUBLE, 0.0),
        (math.inf, DOUBLE, math.inf),
        (decimal.Decimal("1.5"), MONEY, decimal.Decimal("1.50")),
        (decimal.Decimal("-0.000"), MONEY, decimal.Decimal("0.00")),
        (decimal.Decimal("1E+3"), MONEY, decimal.Decimal("1000.00")),
        (9999, MONEY, decimal.Decimal("9999.00")),
        ("ä", TEXT, "ä"),
        (b"\0", BLOB, b"\0"),
        (dt.date(2024, 1, 1), DATE, dt.date(2024, 1, 1)),
        (dt.datetime(2024, 1, 1, 12), TIMESTAMP, UTC_NOON),  # noqa: DTZ001
        (dt.datetime(2024, 1, 1, 17, 30, tzinfo=INDIA), TIMESTAMP, UTC_NOON),
        *((None, kind, None) for kind in (BOOLEAN, BIGINT, DOUBLE, MONEY, TEXT, BLOB, DATE, TIMESTAMP)),
    ],
)
def test_what_fits(value, kind, stored):
    result = check_value(value, kind)
    assert result == stored
    assert type(result) is type(stored)
    assert str(result) == str(stored)
    assert check_rows("t", [Field("c", kind)], [(value,)]) == [(stored,)]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, BOOLEAN, "BOOLEAN"),
        (True, BIGINT, "BIGINT"),
        (1.0, BIGINT, "BIGINT"),
        ("1", BIGINT, "BIGINT"),
        (2**63, BIGINT, r"−2\^63 to 2\^63 − 1"),
        (True, DOUBLE, "DOUBLE"),
        ("1.0", DOUBLE, "DOUBLE"),
        (decimal.Decimal(1), DOUBLE, "DOUBLE"),
        (10**400, DOUBLE, "at most about"),
        (1.5, MONEY, "DECIMAL"),
        (True, MONEY, "DECIMAL"),
        (decimal.Decimal("1.005"), MONEY, "at most 2 digits after the point"),
        (decimal.Decimal("1e400"), MONEY, "at most 4 digits before the point"),
        (decimal.Decimal("1e-999999"), MONEY, "at most 2 digits after the point"),
        (decimal.Decimal("1e999999"), MONEY, "at most 4 digits before the point"),
        (10000, MONEY, "at most 4 digits before the point"),
        (decimal.Decimal("NaN"), MONEY, "a finite DECIMAL"),
        (b"x", TEXT, "TEXT"),
        (1, TEXT, "TEXT"),
        ("a\0b", TEXT, "without the character U\\+0000"),
        ("\ud800", TEXT, "lone surrogates"),
        ("x", BLOB, "BLOB"),
        (bytearray(b"x"), BLOB, "BLOB"),
        (UTC_NOON, DATE, "DATE"),
        ("2024-01-01", DATE, "DATE"),
        (dt.date(2024, 1, 1), TIMESTAMP, "TIMESTAMP"),
        (dt.datetime.min.replace(tzinfo=INDIA), TIMESTAMP, "the years 1 to 9999"),
    ],
)
def test_what_does_not_fit(value, kind, expected):
    with pytest.raises(UnfitError, match=expected):
        check_value(value, kind)
    with pytest.raises(DataError, match=expected) as refused:
        # Among good values, so that the check of whole columns meets it.
        check_rows("rel", [Field("id", BIGINT), Field("c", kind)], [(1, None), (2, value), (3, None)])
    error = refused.value
    assert (error.relation, error.column, error.expected) == ("rel", "c", str(kind))
    assert error.value is value
    assert str(error).startswith(f"rel.c cannot hold {value!r}: expected ")


def test_rows_of_any_shape():
    fields = [Field("a", BIGINT, nullable=False), Field("b", DOUBLE)]
    assert check_rows("t", fields, []) == []
    assert check_rows("t", fields, iter([(1, 2), [3, -0.0], {"a": 4}, {"b": 5, "a": 6}])) == [
        (1, 2.0),
        (3, 0.0),
        (4, None),
        (6, 5.0),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1,), "t has 2 columns \\(a, b\\), but \\(1,\\) has 1 values"),
        ((1, 2.0, 3), "has 3 values"),
        ({"a": 1, "c": 2}, "t has no column 'c'; its columns are a, b"),
        ((None, 1.0), "t.a is NOT NULL"),
        ({"b": 1.0}, "t.a is NOT NULL"),
        ("xy", "is no row"),
        (7, "is no row"),
    ],
)
def test_rows_that_are_none(row, message):
    fields = [Field("a", BIGINT, nullable=False), Field("b", DOUBLE)]
    with pytest.raises(DataError, match=message):
        check_rows("t", fields, [(1, 2.0), row])


def test_rows_already_in_form_are_not_copied():
    rows = [(1, "x", UTC_NOON), (None, None, None)]
    fields = [Field("a", BIGINT), Field("b", TEXT), Field("c", TIMESTAMP)]
    assert check_rows("t", fields, rows)[0] is rows[0]


def test_every_nan_is_the_same():
    [first, second] = check_rows("t", [Field("x", DOUBLE)], [(float("nan"),), (float("inf") - float("inf"),)])
    assert first == second
    assert len({first, second}) == 1


cells = {
    BOOLEAN: st.booleans(),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats() | st.integers(-(2**60), 2**60),
    MONEY: st.decimals(-9999, 9999, places=2) | st.integers(-9999, 9999),
    TEXT: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    BLOB: st.binary(),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(timezones=st.none() | st.just(dt.UTC)),
}
columns = st.sampled_from(list(cells)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(st.none() | cells[kind], max_size=8))
)


@given(columns)
def test_whole_columns_are_checked_as_single_values_are(column):
    kind, values = column
    rows = check_rows("t", [Field("c", kind)], [(value,) for value in values])
    assert rows == [(check_value(value, kind),) for value in values]
    assert [type(row[0]) for row in rows] == [type(check_value(value, kind)) for value in values]
    assert check_rows("t", [Field("c", kind)], rows) == rows


@given(columns)
def test_text_of_a_value_reads_back(column):
    kind, values = column
    for value in values:
        stored = check_value(value, kind)
        text = None if stored is None else to_text(stored)
        assert cast_value(text, TEXT, kind) == stored or stored is NAN


@given(columns)
def test_order_is_total_with_nulls_last_and_nan_before(column):
    kind, values = column
    stored = [check_value(value, kind) for value in values]
    rows = sorted_rows((value,) for value in stored)
    ordered = [row[0] for row in rows]
    assert all(less_or_equal(a, b) for a, b in itertools.pairwise(ordered))
    assert ordered == sorted(ordered, key=functools.cmp_to_key(compare))
    assert all(less_or_equal(a, b) or less_or_equal(b, a) for a in ordered for b in ordered)


def compare(left, right):
    """The order, said in another way."""
    if left is None or right is None:
        return (left is None) - (right is None)
    if left is NAN or right is NAN:
        return (left is NAN) - (right is NAN)
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return (left > right) - (left < right)


def test_sorted_rows_by_columns():
    rows = [(2, "a"), (None, "b"), (1, None), (1, "z"), (1, "Z"), (2, "a")]
    assert sorted_rows(rows) == [(1, "Z"), (1, "z"), (1, None), (2, "a"), (2, "a"), (None, "b")]
    assert sorted_rows([(NAN,), (1.0,), (math.inf,)]) == [(1.0,), (math.inf,), (NAN,)]


def test_bad_casts_raise():
    with pytest.raises(CastError, match="'x' cannot be cast to BIGINT: expected a whole number"):
        cast_value("x", TEXT, BIGINT)


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        (BIGINT, DOUBLE, DOUBLE),
        (BIGINT, MONEY, Type(Kind.DECIMAL, 21, 2)),
        (MONEY, Type(Kind.DECIMAL, 5, 4), Type(Kind.DECIMAL, 8, 4)),
        (MONEY, DOUBLE, DOUBLE),
        (DATE, TIMESTAMP, TIMESTAMP),
        (TEXT, BIGINT, None),
        (BOOLEAN, BIGINT, None),
        (TEXT, TEXT, TEXT),
    ],
)
def test_common_types(left, right, common):
    assert common_type(left, right) == common
    assert common_type(right, left) == common
    if common is not None:
        assert is_implicit(left, common)
        assert is_implicit(right, common)


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 0), (5, 6), (5, -1), (None, 2)])
def test_no_such_decimal(precision, scale):
    with pytest.raises(ValueError, match="no such type"):
        Type(Kind.DECIMAL, precision, scale)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(2**63, BIGINT), (True, BIGINT), (1, BOOLEAN), ("a\0", TEXT), ("\ud800", TEXT), (UTC_NOON, DATE)],
)
def test_a_single_row_is_checked_as_strictly_as_many(value, kind):
    for rows in ([(value,)], [(value,), (value,)]):
        with pytest.raises(DataError):
            check_rows("t", [Field("c", kind)], rows)


def test_a_single_row_without_a_value_that_must_be_there_is_refused():
    with pytest.raises(DataError, match="NOT NULL"):
        check_rows("t", [Field("c", BIGINT, nullable=False)], [(None,)])
