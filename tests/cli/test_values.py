"""What is written is read back the same: each type as text and JSON, each file format as rows."""

import datetime as dt
import io
import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everview.cli.csv_files import csv_line, read_csv
from everview.cli.json_lines import json_line, read_json_lines
from everview.language.program import Program
from everview.language.text_values import UnreadableError, read_text, read_texts, write_text
from everview.language.types import BIGINT, BLOB, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, Kind, Type
from everview.language.values import NAN, check_rows

MONEY = Type(Kind.DECIMAL, 38, 4)

VALUES = {
    BOOLEAN: st.booleans(),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats().map(lambda x: NAN if math.isnan(x) else x + 0.0),
    MONEY: st.decimals(
        min_value=-(10**33), max_value=10**33, places=4, allow_nan=False, allow_infinity=False
    ),
    TEXT: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    BLOB: st.binary(),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(timezones=st.just(dt.UTC)),
}

EVERYTHING = Program.parse(
    "CREATE TABLE r (a BOOLEAN, b BIGINT, c DOUBLE, d DECIMAL(38,4), e TEXT, f BLOB, g DATE, h TIMESTAMP);"
    "CREATE TABLE t (e TEXT)"
).relations

ROWS = st.lists(st.tuples(*(st.none() | values for values in VALUES.values())), max_size=12)
TEXTS = st.lists(st.tuples(st.none() | st.text(st.sampled_from('a",\r\n '), max_size=5)), max_size=12)


@pytest.mark.parametrize("target", list(VALUES), ids=str)
def test_text_round_trips(target):
    @given(st.lists(st.none() | VALUES[target], min_size=1))
    def check(values):
        texts = [None if value is None else write_text(value) for value in values]
        assert list(read_texts(texts, target)) == values
        assert [None if text is None else read_text(text, target) for text in texts] == values

    check()


# Cells near every pattern's edge, so that the fast way over a column must agree with the way cell by cell.
NEAR = {
    BOOLEAN: ["true", "false", "t", "F", "TRUE", "yes", "off", "1", "0", "2", "", " t "],
    BIGINT: ["0", "-1", "+7", "12", "9223372036854775807", "9223372036854775808", "1_0", " 5 ", "٣", ""],
    DOUBLE: ["0", "-0", "1.", ".5", "1e5", "1e400", "-1e400", "1e-400", "nan", "inf", "1_0", "0x1", "١"],
    MONEY: ["0", "1.5", "-.5", "1.", "1e2", "NaN", "Infinity", "1_0", " 3 ", "١", "1e99999"],
    BLOB: ["", "00", "fF", "\\x00ff", "0", "0g", "00 11", " 00 "],
    DATE: ["2026-01-31", "2026-02-30", "2026-1-3", "20260131", "2026-W01-1", "2026-01-31 10:00"],
    TIMESTAMP: [
        "2026-01-31T12:30:00Z",
        "2026-01-31 12:30:00",
        "2026-01-31T12:30:00.5",
        "2026-01-31T12:30:00.123+02:00",
        "2026-01-31T12:30:00.1234567",
        "2026-01-31T24:00:00",
        "2026-01-31T12:30",
        "2026-01-31",
        "20260131T123000",
        "2026-01-31T12:30:60Z",
        "0001-01-01T00:00:00+01:00",
        "2026-01-31T12:30:00,5",
        "2026-01-31T12:30:00+23:59",
    ],
}


@pytest.mark.parametrize("target", list(NEAR), ids=str)
def test_a_column_is_read_as_its_cells_are(target):
    @given(st.lists(st.sampled_from([None, *NEAR[target]]), min_size=1, max_size=3))
    def check(texts):
        def cells():
            values = []
            for index, text in enumerate(texts):
                try:
                    values.append(None if text is None else read_text(text, target))
                except UnreadableError:
                    return index
            return values

        try:
            found = list(read_texts(texts, target))
        except UnreadableError as bad:
            found = bad.index
        assert found == cells()

    for text in NEAR[target]:
        check = example([text])(check)
    check()


def test_what_cells_mean():
    assert read_texts([" yes ", "0"], BOOLEAN) == [True, False]
    assert read_texts(["\\x00ff", "0A"], BLOB) == [b"\x00\xff", b"\n"]
    assert read_texts(["1e2", ".5"], MONEY) == [Decimal(100), Decimal("0.5")]
    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    texts = ["2026-01-31 12:00:00", "2026-01-31T14:00:00+02:00", "2026-01-31T12:00:00Z", "2026-01-31T12:00"]
    assert read_texts(texts, TIMESTAMP) == [noon] * 4
    assert read_texts(texts[:3], TIMESTAMP) == [noon] * 3
    assert read_texts(["", None], TEXT) == ["", None]


def read(reader, relation, text, size):
    chunks = reader(io.StringIO(text, newline=""), "f", EVERYTHING[relation], lambda: 0, size)
    return [row for chunk in chunks for row in chunk.rows]


@given(ROWS, st.integers(1, 5))
def test_rows_round_trip_through_csv(rows, size):
    text = "".join(csv_line(row) + "\n" for row in [EVERYTHING["r"].columns, *rows])
    assert read(read_csv, "r", text, size) == rows


@given(TEXTS, st.integers(1, 5), st.sampled_from(["\n", "\r\n"]))
@example([(None,), ("",), ("\n",), ('""',)], 2, "\n")
def test_one_column_round_trips_through_csv(rows, size, end):
    text = "".join(csv_line(row) + end for row in [("e",), *rows])
    assert read(read_csv, "t", text, size) == rows


@given(ROWS, st.integers(1, 5))
def test_rows_round_trip_through_json(rows, size):
    relation = EVERYTHING["r"]
    text = "".join(json_line(relation.columns, row) + "\n" for row in rows)
    found = read(read_json_lines, "r", text, size)
    assert check_rows("r", relation.schema, found) == rows


@given(
    st.lists(st.sampled_from(["a,1\n", '"x\ny",2\n', "\n", ",3\n", '"",4\n']), max_size=8), st.integers(1, 4)
)
def test_the_line_of_a_bad_row_is_right(lines, size):
    text = "e,b\n" + "".join(lines) + "a,bad\n" + "".join(lines)
    expected = 1 + sum(line.count("\n") for line in lines) + 1
    with pytest.raises(Exception, match=rf"^f, line {expected}: r\.b cannot hold 'bad'"):
        read(read_csv, "r", text, size)
