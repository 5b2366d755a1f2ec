from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.algebra.causal_length import CausalLengths, deleted, inserted, is_present
from everview.errors import DataError


def test_insertions_and_deletions_take_turns():
    assert [inserted(n) for n in range(5)] == [1, 1, 3, 3, 5]
    assert [deleted(n) for n in range(5)] == [0, 2, 2, 4, 4]
    assert [is_present(n) for n in range(5)] == [False, True, False, True, False]


def test_streams_section_2_the_deletion_wins_in_every_order():
    """s0 inserts; s1 concurrently inserts the same tuple and deletes it; s4 hears of both."""
    initial = CausalLengths()
    at_s0 = initial.insert("t2")
    at_s1 = initial.insert("t2")
    at_s1_later = at_s1.delete("t2")
    for order in permutations([at_s0, at_s1, at_s1_later, at_s0]):
        at_s4 = initial
        for arriving in order:
            at_s4 |= arriving
        assert not at_s4.is_present("t2")


def test_two_concurrent_deletes_are_one():
    start = CausalLengths().insert("t")
    merged = start.delete("t") | start.delete("t")
    assert merged["t"] == 2
    assert merged.insert("t").is_present("t")


def test_the_longest_chain_wins_not_the_latest_in_time():
    start = CausalLengths({"t": 1})
    late_delete = start.delete("t")
    early_reinsert = start.delete("t").insert("t")
    assert (early_reinsert | late_delete).is_present("t")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("tu"), st.sampled_from("+-|"))))
def test_updates_are_inflationary_and_do_what_they_say(history):
    sites = {"a": CausalLengths(), "b": CausalLengths()}
    for site, id_, action in history:
        before = sites[site]
        if action == "|":
            sites[site] = before | sites["b" if site == "a" else "a"]
        else:
            sites[site] = before.insert(id_) if action == "+" else before.delete(id_)
            assert sites[site].is_present(id_) is (action == "+")
            assert sites[site][id_] - before[id_] in (0, 1)
        assert before <= sites[site]
    assert sites["a"] | sites["b"] == sites["b"] | sites["a"]


@pytest.mark.parametrize("lengths", [{"t": -1}, {"t": 1.0}, {"t": True}, {3.5: 1}, {"": 1}, {("t",): 1}])
def test_bad_lengths_and_ids_are_refused(lengths):
    with pytest.raises(DataError):
        CausalLengths(lengths)


def test_a_negative_length_has_no_parity():
    for use in (is_present, inserted, deleted):
        with pytest.raises(DataError):
            use(-1)
