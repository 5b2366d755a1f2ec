"""Columns of any values survive the wire, bit by bit, and bytes that are no column are refused."""

import struct
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replication.wire.samples import EXTREMES, columns, exact

from everview.errors import WireError
from everview.replication.wire.codes import Code
from everview.replication.wire.columns import decode_column, encode_column


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 60).flatmap(columns))
def test_a_column_comes_back_as_it_was(column):
    back = decode_column(memoryview(encode_column(column)), len(column))
    assert list(map(exact, back)) == list(map(exact, column))


@pytest.mark.parametrize("count", [1, 2, 7, 64, 300])
def test_extreme_integers_next_to_each_other(count):
    for pair in product(EXTREMES, repeat=2):
        column = [*pair] * count
        assert decode_column(memoryview(encode_column(column)), len(column)) == column


def test_steps_of_more_than_64_bits_between_a_few():
    """From the least to 0, or from the bits of -0.0 to those of 0.0, is more than a column of steps holds."""
    for few in product(EXTREMES, repeat=3):
        bits = struct.pack("<3q", *few)
        for kind in "qd":
            coded = encode_column(struct.unpack(f"<3{kind}", bits))
            assert struct.pack(f"<3{kind}", *decode_column(memoryview(coded), 3)) == bits


@given(st.lists(st.integers(1, 30), min_size=1, max_size=3), st.integers(1, 60), st.integers(0, 9))
def test_runs_may_be_as_long_as_each_other(lengths, times, last):
    """Their lengths are then a column of runs themselves, and runs do not nest."""
    values = [n for n, length in enumerate(lengths * times) for _ in range(length)] + [-1] * last
    data = encode_column(values)
    assert decode_column(memoryview(data), len(values)) == values


def test_the_bytes_do_not_depend_on_the_order_of_a_set():
    names = [f"n{number % 30}" for number in range(90)]
    coded = encode_column(names)
    assert coded[0] == Code.DICTIONARY
    assert coded.index(b"n0n1n2n3") > 0


INTEGER = b"\x01\x01" + bytes(8)


@pytest.mark.parametrize(
    "column",
    [
        b"",
        b"\0",
        b"\x63",
        b"\x01",
        b"\x01\x09" + bytes(8) + bytes(27),
        b"\x01\x01" + bytes(8) + b"\1\2",
        b"\x01\x01" + bytes(8) + b"\1\2\3\4",
        b"\x01\x08" + struct.pack("<q", 1) + bytes(24),
        b"\x01\x01" + struct.pack("<q", 2**63 - 2) + b"\0\1\2",
        b"\x02\x00" + struct.pack("<qq", 2**62, 2**62),
        b"\x02\x01" + struct.pack("<q", 0),
        b"\x03" + struct.pack("<II", 4, 10) + b"\x01\0" + bytes(16),
        b"\x03" + struct.pack("<II", 1, 10) + b"\x01\0" + struct.pack("<q", 4) + b"\x01\0" + bytes(8),
        b"\x03" + struct.pack("<II", 1, 10) + b"\x01\0" + struct.pack("<q", 3) + b"\x03" + bytes(8),
        b"\x03" + struct.pack("<II", 3, 99) + b"\x01\0" + struct.pack("<q", 1),
        b"\x03" + struct.pack("<II", 2, 12) + b"\x01\1" + struct.pack("<q", -1) + b"\0\5" + INTEGER + b"\1\1",
        b"\x04",
        b"\x04\x05",
        b"\x05\x00\x00",
        b"\x05" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 1) + b"\xff\xfe\xfd",
        b"\x05" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 1) + b"abcd",
        b"\x05" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", -1) + b"abc",
        b"\x05" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 2**62) + b"abc",
        b"\x05" + struct.pack("<I", 9999) + b"abc",
        b"\x06" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 1) + b"ab",
        b"\x07",
        b"\x07" + struct.pack("<II", 4, 10) + b"\x01\0" + bytes(8) + INTEGER + b"\0\0\0",
        b"\x07" + struct.pack("<II", 1, 10) + b"\x01\0" + bytes(8) + INTEGER + b"\0\0\1",
        b"\x07" + struct.pack("<II", 1, 99) + b"\x01\0" + bytes(8) + INTEGER + b"\0\0\0",
        b"\x08",
        b"\x08" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 1),
        b"\x08" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", -1),
        b"\x08"
        + struct.pack("<I", 10)
        + b"\x01\0"
        + bytes(8)
        + (struct.pack("<I", 10) + b"\x01\0" + bytes(8)) * 5,
        b"\x08"
        + struct.pack("<I", 10)
        + b"\x01\0"
        + struct.pack("<q", 1)
        + struct.pack("<I", 15)
        + b"\x08"
        + bytes(14),
    ],
)
def test_columns_of_three_rows_that_are_none(column):
    with pytest.raises(WireError) as caught:
        decode_column(memoryview(column), 3)
    assert caught.value.where == "column"


def test_dictionaries_do_not_nest_for_ever():
    column = b"\x01\0" + struct.pack("<q", 7)
    for _ in range(2000):
        column = b"\x07" + struct.pack("<II", 1, len(column)) + column + b"\x01\0" + bytes(8)
    with pytest.raises(WireError, match="deeply"):
        decode_column(memoryview(column), 1)
