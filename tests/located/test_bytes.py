"""The part of the benchmark of recursion about located rules: both ways agree, and it has its figures."""

from benchmarks.located_bytes import figures, measure


def test_both_ways_hold_the_same_after_every_change():
    """`measure` compares them itself, all relations after every change."""
    found = measure("reachability", sites=6, chords=2, changes=8, seed=1)
    assert found.count == 8
    assert found.changes["located"].size > 0


def test_a_change_costs_less_where_proofs_are_kept():
    found, shown = figures(quick=True)
    assert 0 < found["located_bytes_ratio"] < 1
    assert 0 < found["located_paths_bytes_ratio"] < 1
    assert found["located_first_bytes_ratio"] > 1, "what it costs at first"
    assert len(shown) == 8
