"""Only what the store itself would hold passes the check, and all of that does."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.engines.sqlite.parts import COUNT, value
from everview.engines.sqlite.scalars.storage import encode_long, store_value
from everview.errors import WireError
from everview.language.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    Field,
    decimal_type,
)
from everview.language.values import check_value
from everview.replication.wire.checks import check_columns, wrong_in

SHORT, LONG = decimal_type(5, 2), decimal_type(20, 4)
NINES = "9" * 20


def column_of(kind):
    return value(Field("x", kind, nullable=True))


def fits(column, *cells):
    if (wrong := wrong_in(list(cells), column)) is not None:
        raise WireError(wrong, where="value")


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        (COUNT, [0, 2**63 - 1], [-1, 2**63, None, 1.0, b""]),
        (column_of(BOOLEAN), [0, 1, None], [2, -1, True, "1", 1.0]),
        (column_of(BIGINT), [-(2**63), 2**63 - 1, None], [2**63, -(2**63) - 1, True, 1.0, "1", b"1"]),
        (
            column_of(DOUBLE),
            [0.0, 1.5, -3e300, float("inf"), "NaN", None],
            [-0.0, float("nan"), 1, "nan", "", b""],
        ),
        (column_of(SHORT), [99999, -99999, 0, None], [100000, -100000, 1.0, "1", Decimal(1)]),
        (
            column_of(LONG),
            ["1" + NINES, "0" + "0" * 20, "1" + "0" * 20, None],
            ["0" + NINES, "2" + "0" * 20, "1" + "0" * 19, "1" + "0" * 21, "1" + "٣" * 20, 1, "-" + "0" * 20],
        ),
        (column_of(TEXT), ["", "ä\U0001f600", None], ["a\0", "\ud800", b"a", 1]),
        (column_of(BLOB), [b"", b"\0\xff", None], ["", 1, bytearray(b"a")]),
        (column_of(DATE), [-719162, 2932896, None], [-719163, 2932897, 1.0, "2020-01-01"]),
        (
            column_of(TIMESTAMP),
            [-62135596800000000, 253402300799999999, None],
            [-62135596800000001, 253402300800000000, 0.0],
        ),
    ],
    ids=lambda thing: str(getattr(thing, "field", "")),
)
def test_a_column_takes_what_the_store_holds(column, good, bad):
    fits(column)
    fits(column, *good)
    for cell in bad:
        for cells in ([cell], [*good, cell], [cell, *good]):
            with pytest.raises(WireError) as caught:
                fits(column, *cells)
            assert caught.value.where == "value"


@pytest.mark.parametrize("kind", [BOOLEAN, BIGINT, DOUBLE, SHORT, LONG, TEXT, BLOB, DATE, TIMESTAMP], ids=str)
def test_null_only_where_it_may_be(kind):
    fits(column_of(kind), None, None)
    with pytest.raises(WireError, match="NULL"):
        fits(value(Field("x", kind, nullable=False)), None)


@given(st.data())
def test_whatever_the_door_lets_in_passes(data):
    kind, values = data.draw(
        st.sampled_from(
            [
                (BOOLEAN, st.booleans()),
                (BIGINT, st.integers(-(2**63), 2**63 - 1)),
                (DOUBLE, st.floats()),
                (SHORT, st.decimals(-999, 999, places=2)),
                (LONG, st.decimals(-(10**15), 10**15, places=4)),
                (TEXT, st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
                (BLOB, st.binary()),
                (DATE, st.dates()),
                (TIMESTAMP, st.datetimes(timezones=st.just(dt.UTC))),
            ]
        )
    )
    cells = [store_value(check_value(cell, kind), kind) for cell in data.draw(st.lists(st.none() | values))]
    fits(column_of(kind), *[int(cell) if cell is True or cell is False else cell for cell in cells])


def test_the_negative_zero_of_a_decimal_is_a_second_form():
    assert encode_long(0, 20) == "1" + "0" * 20
    assert encode_long(-1, 20) == "0" + "9" * 19 + "8"


def test_the_error_names_the_place():
    with pytest.raises(WireError, match=r"sightings, sector: a value of type str"):
        check_columns("sightings", [[1], ["x"]], (COUNT, value(Field("sector", BIGINT))), 1)


@pytest.mark.parametrize("columns", [[], [[1]], [[1], [1], [1]]])
def test_the_number_of_columns(columns):
    with pytest.raises(WireError) as caught:
        check_columns("r", columns, (COUNT, COUNT), 1)
    assert caught.value.where == "section"


def test_the_length_of_columns():
    with pytest.raises(WireError) as caught:
        check_columns("r", [[1, 2], [1]], (COUNT, COUNT), 2)
    assert caught.value.where == "section"
