"""Canonical bytes: one value, one text of bytes, and back."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.algebra.crdt.contributions import Entry
from everview.algebra.zset import ZSet
from everview.errors import DataError
from everview.streams.windows.coding import CANONICAL
from everview.streams.windows.records import RowChange

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.decimals(allow_nan=False, places=2)
    | st.fractions()
    | st.dates()
    | st.datetimes()
)
keys = st.integers() | st.text(max_size=3) | st.tuples(st.integers(), st.text(max_size=2))
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.frozensets(keys, max_size=3)
        | st.builds(Entry, st.integers(0), inner, st.dictionaries(st.integers(1), inner, max_size=2))
    ),
    max_leaves=8,
)


@given(values)
def test_what_is_encoded_is_read_again(value):
    data = CANONICAL.encode(value)
    assert CANONICAL.encode(CANONICAL.decode(data)) == data
    assert CANONICAL.decode(data) == value


@given(st.dictionaries(keys, st.integers(), max_size=6), st.randoms())
def test_the_order_in_which_a_map_or_set_was_filled_is_not_seen(value, chance):
    items = list(value.items())
    chance.shuffle(items)
    assert CANONICAL.encode(dict(items)) == CANONICAL.encode(value)
    assert CANONICAL.encode(frozenset(k for k, _ in items)) == CANONICAL.encode(frozenset(value))


def test_values_that_python_takes_for_equal_have_bytes_of_their_own():
    alike = [1, 1.0, True, Decimal(1), Fraction(1)]
    assert len({CANONICAL.encode(value) for value in alike}) == len(alike)
    assert len({CANONICAL.encode(value) for value in [(1,), [1], frozenset({1})]}) == 3


def test_samples_of_every_kind():
    for value in [2**80, ZSet({"x": -2}), RowChange((1, "a"), -1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]:
        again = CANONICAL.decode(CANONICAL.encode(value))
        assert again == value
        assert type(again) is type(value)


def test_what_has_no_bytes_and_what_is_no_value_is_refused():
    with pytest.raises(DataError, match="give the group a codec"):
        CANONICAL.encode({"x": object()})
    for data in (b"", b"\xc1", b"\x91\xa1?", b"\x91\xa1i"):
        with pytest.raises(DataError, match="no value"):
            CANONICAL.decode(data)
