"""Every reachable state of three sites over one tuple or key, by the writes seen; `quotient` goes further."""

import pytest
from tests.model.explore import Explorer


@pytest.mark.parametrize(("relation", "states"), [("R", 82), ("K", 839), ("B", 156), ("W", 156)])
def test_every_state_of_one_write_each(relation, states):
    assert Explorer(relation, operations=1, looks=3).run() == states


def test_every_state_of_two_writes_each_to_a_set():
    explorer = Explorer("R", operations=2)
    assert explorer.run() == 30_063
    print(f"R: 30,063 states, {explorer.checks:,} checks")  # noqa: T201


@pytest.mark.parametrize(
    ("relation", "shortcut"),
    [("R", "unique ids for sets"), ("K", "keyed lengths"), ("B", "bag sums"), ("W", "add-wins reuse")],
)
def test_a_wrong_table_is_found(relation, shortcut):
    with pytest.raises(AssertionError):
        Explorer(relation, operations=2, limit=5_000, shortcuts=frozenset([shortcut])).run()
