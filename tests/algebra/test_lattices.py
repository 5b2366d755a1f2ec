import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algebra.samples import LATTICES, STAMPS

from everview.algebra.lattices import (
    CONFLICT,
    EMPTY,
    Dots,
    DotSet,
    LastWriter,
    Max,
    MergeMap,
    Min,
    Vectors,
    VersionVector,
    WriteOnce,
)
from everview.errors import DataError, NonDeterminismError
from everview.testing import check_lattice


@pytest.mark.parametrize("name", LATTICES)
def test_every_lattice_obeys_its_laws(name):
    lattice, samples = LATTICES[name]
    check_lattice(lattice, samples)


dot_sets = st.sets(st.tuples(st.sampled_from("ab"), st.integers(1, 12))).map(DotSet)
vectors = st.dictionaries(st.sampled_from("abc"), st.integers(0, 5)).map(VersionVector)


def test_random_dot_sets_and_vectors_obey_the_lattice_laws():
    check_lattice(Dots(), dot_sets, max_examples=100)
    check_lattice(Vectors(), vectors, max_examples=100)
    check_lattice(MergeMap(Max()), st.dictionaries(st.sampled_from("abc"), st.integers()), max_examples=100)


@given(
    st.sets(st.tuples(st.sampled_from("ab"), st.integers(1, 12))),
    st.sets(st.tuples(st.sampled_from("ab"), st.integers(1, 12))),
)
def test_a_dot_set_is_the_set_of_its_dots(mine, theirs):
    a, b = DotSet(mine), DotSet(theirs)
    assert list(a) == sorted(mine)
    assert len(a) == len(mine)
    assert list(a | b) == sorted(mine | theirs)
    assert (a <= b) is (mine <= theirs)
    assert (a == b) is (mine == theirs)
    assert all((dot in a) is (dot in mine) for dot in ((o, n) for o in "ab" for n in range(14)))
    assert a.prefix("a") == next(n for n in range(14) if ("a", n + 1) not in mine)


def test_a_million_contiguous_dots_take_one_run():
    evens = DotSet.from_runs({"site": [(n, n) for n in range(2, 1_000_001, 2)]})
    odds = DotSet.from_runs({"site": [(n, n) for n in range(1, 1_000_001, 2)]})
    whole = evens | odds
    assert len(whole) == 1_000_000
    assert whole.runs == {"site": ((1, 1_000_000),)}
    assert sys.getsizeof(whole.runs["site"]) + sys.getsizeof(whole.runs["site"][0]) < 200
    assert ("site", 1_000_001) not in whole


def test_overlapping_runs_coalesce_in_any_order():
    assert DotSet.from_runs({"a": [(5, 9), (1, 2), (3, 6)]}).runs == {"a": ((1, 9),)}
    assert DotSet.from_runs({"a": []}) == DotSet()


@pytest.mark.parametrize(
    "runs", [{"a": [(0, 3)]}, {"a": [(3, 2)]}, {"": [(1, 1)]}, {"a": [(1.0, 2)]}, {"a": [(True, 2)]}]
)
def test_bad_runs_are_refused(runs):
    with pytest.raises(DataError):
        DotSet.from_runs(runs)


@pytest.mark.parametrize("dots", [[("a", 0)], [("a", -1)], [("a", "1")], [(7, 1)], [("a", True)]])
def test_bad_dots_are_refused(dots):
    with pytest.raises(DataError):
        DotSet(dots)


def test_a_merge_says_whether_it_grew():
    assert Max().merge(3, 5) == (5, True)
    assert Max().merge(5, 3) == (5, False)
    assert Min().merge(5, 3) == (3, True)
    assert Max().merge(None, 0) == (0, True)
    assert Max().merge(0, None) == (0, False)


def test_a_merge_map_forwards_only_what_grew():
    table = MergeMap(Max())
    assert table.delta({"a": 1, "b": 5}, {"a": 2, "b": 4, "c": 1, "d": None}) == {"a": 2, "c": 1}
    assert table.canonical({"a": None, "b": 1}) == {"b": 1}
    with pytest.raises(TypeError):
        table.join({"a": 1}, {})["a"] = 9


@pytest.mark.parametrize(
    "values", [(1, "a"), (1, 1.0), (True, 1), (math.nan, 1.0), (1.0, math.nan), ({}, {})]
)
def test_values_without_a_common_order_are_refused(values):
    for lattice in (Max(), Min()):
        with pytest.raises(DataError):
            lattice.join(*values)


def test_two_values_in_a_write_once_cell_conflict_when_read_not_when_merged():
    cell = WriteOnce()
    assert cell.read(EMPTY) is None
    assert cell.read(cell.join("a", "a")) == "a"
    assert cell.join("a", "b") is CONFLICT
    assert cell.join(1, True) is CONFLICT
    with pytest.raises(NonDeterminismError, match="two different values"):
        cell.read(CONFLICT)


def test_the_last_writer_wins_in_every_order_and_one_stamp_has_one_value():
    register = LastWriter()
    _, old, _, new, newest = ((stamp, f"by {stamp}") for stamp in STAMPS)
    assert register.join(old, new) == register.join(new, old) == new
    assert register.read(register.join(register.join(newest, old), new)) == newest[1]
    assert register.read(register.bottom()) is None
    torn = register.join((STAMPS[1], "p"), (STAMPS[1], "q"))
    assert register.join(torn, new) == new
    with pytest.raises(NonDeterminismError):
        register.read(torn)


def test_a_version_vector_covers_what_it_has_seen():
    vector = VersionVector({"a": 2}).advance("a").advance("b")
    assert vector == VersionVector({"a": 3, "b": 1})
    assert vector.covers("a", 3)
    assert not vector.covers("a", 4)
    assert not vector.covers("c", 1)
    assert vector["c"] == 0
    assert repr(vector) == "VersionVector({a: 3, b: 1})"


@pytest.mark.parametrize("commits", [{"a": -1}, {"a": 1.5}, {"a": True}, {"": 1}, {3: 1}])
def test_bad_vectors_are_refused(commits):
    with pytest.raises(DataError):
        VersionVector(commits)
