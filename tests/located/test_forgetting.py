"""Places forget what follows from facts that are gone for long; what returns is derived anew."""

import random

import pytest
from tests.located.programs import REACH
from tests.located.worlds import World


def kept(world, place):
    """How many derivations and lengths lie in a place's mail."""
    rows = world.sites[place].rows(world.located.mail(place))
    return sum(not row[-1] for row in rows), sum(bool(row[-1]) for row in rows)


@pytest.mark.parametrize("collector", "ab")
def test_what_is_gone_for_long_is_forgotten_and_returns(collector):
    world = World(REACH, "abc", random.Random(10))
    world.write(("link", ("a", "b")), present=True)
    for number in range(10):
        world.write(("link", ("b", f"x{number}")), present=True)
        world.settle()
        world.write(("link", ("b", f"x{number}")), present=False)
    world.settle()
    assert kept(world, "a") == (10, 21), "two lengths of each link that came and went"
    assert world.nodes["a"].status()["monomials"] > 10
    assert world.nodes[collector].collect() == 0, "it has only just been seen to be gone"
    assert world.nodes[collector].collect() == 10
    world.settle()
    assert kept(world, "a") == (0, 11), "the last length of each is kept"
    assert world.nodes["a"].status()["monomials"] == 2
    for place in "abc":
        assert world.nodes[place].collect() == 0
    world.write(("link", ("b", "x3")), present=True)
    world.settle()
    world.compare()
    assert ("a", "x3") in world.nodes["a"].rows("reach")
    world.close()


def test_what_comes_and_goes_is_not_forgotten():
    world = World(REACH, "ab", random.Random(11))
    world.write(("link", ("b", "x")), present=True)
    world.write(("link", ("a", "b")), present=True)
    for _ in range(3):
        world.settle()
        world.write(("link", ("b", "x")), present=False)
        world.settle()
        assert world.nodes["a"].collect() == 0
        world.write(("link", ("b", "x")), present=True)
    world.settle()
    world.compare()
    world.close()


def test_what_is_forgotten_by_one_who_did_not_know_better_is_put_back():
    world = World(REACH, "abc", random.Random(12))
    for pair in ("ab", "bc"):
        world.write(("link", tuple(pair)), present=True)
    world.settle()
    world.write(("link", ("b", "c")), present=False)
    world.settle()
    world.nodes["a"].collect()
    assert world.nodes["a"].collect() > 0
    world.write(
        ("link", ("b", "c")), present=True
    )  # b has not heard that it was forgotten, and sends a length
    world.settle()
    world.compare()
    assert world.nodes["a"].rows("reach") == [("a", "b"), ("a", "c")]
    world.close()
