"""Ids as 16 bytes and as two integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.engines.sqlite.ids import Ids, IdTable, halved, halves, ids_of, joined

IDS = st.binary(min_size=16, max_size=16)


@given(IDS)
def test_there_and_back(id_):
    high, low = halves(id_)
    assert joined(high, low) == id_
    assert all(-(2**63) <= half < 2**63 for half in (high, low))


@given(st.lists(IDS), st.data())
def test_a_column_is_what_its_places_name(table, data):
    shared = IdTable(b"".join(table))
    places = data.draw(st.lists(st.integers(0, len(table) - 1))) if table else []
    column = Ids(shared, places)
    wanted = [table[place] for place in places]
    assert list(column) == wanted
    assert column == wanted
    assert [column[i] for i in range(len(column))] == wanted
    assert list(column[1:]) == wanted[1:]
    assert [joined(*pair) for pair in zip(*column.halves(), strict=True)] == wanted
    assert column.begin_the_table() is (places == list(range(len(places))))


@given(st.lists(st.none() | IDS))
def test_a_column_with_holes_becomes_two_with_holes(column):
    highs, lows = halved(column)
    pairs = zip(highs, lows, strict=True)
    assert [None if high is None else joined(high, low) for high, low in pairs] == column


@given(st.lists(st.sampled_from([b"a" * 16, b"b" * 16, b"c" * 16])))
def test_ids_one_by_one_get_one_place_each(column):
    found = ids_of(column)
    assert list(found) == column
    assert len(found.table) == len(set(column))
    assert ids_of(found) is found


def test_what_is_no_id_is_refused():
    with pytest.raises(Exception, match="16"):
        halves(b"short")
