import pytest

from everview.algebra.clock import TOLERANCE_US, HybridClock, Stamp
from everview.errors import DataError


class Wall:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


def test_stamps_rise_even_when_the_wall_clock_stands_still_or_goes_back():
    wall = Wall(100)
    clock = HybridClock("a", wall)
    stamps = [clock.stamp(), clock.stamp()]
    wall.now = 50
    stamps.append(clock.stamp())
    wall.now = 101
    stamps.append(clock.stamp())
    assert stamps == [Stamp(100, 0, "a"), Stamp(100, 1, "a"), Stamp(100, 2, "a"), Stamp(101, 0, "a")]
    assert stamps == sorted(stamps)


def test_a_write_after_seeing_another_is_stamped_later_on_a_slow_clock():
    fast, slow = HybridClock("fast", Wall(5_000)), HybridClock("slow", Wall(10))
    seen = fast.stamp()
    assert slow.observe(seen) is True
    assert slow.stamp() > seen


def test_the_incarnation_breaks_ties_alike_everywhere():
    assert HybridClock("b", Wall(7)).stamp() > HybridClock("a", Wall(7)).stamp()


def test_a_stamp_from_too_far_ahead_waits_and_does_not_drag_the_clock_along():
    wall = Wall(1_000)
    clock = HybridClock("a", wall)
    ahead = Stamp(1_000 + TOLERANCE_US + 1, 0, "broken")
    assert clock.observe(ahead) is False
    assert clock.stamp() == Stamp(1_000, 0, "a")
    wall.now += 1
    assert clock.observe(ahead) is True
    assert clock.stamp() > ahead


@pytest.mark.parametrize("fields", [(1.5, 0, "a"), (1, -1, "a"), (1, 0, ""), (True, 0, "a"), (1, "0", "a")])
def test_bad_stamps_are_refused(fields):
    with pytest.raises(DataError):
        Stamp(*fields)


def test_only_stamps_are_observed():
    with pytest.raises(DataError, match="not a stamp"):
        HybridClock("a", Wall(1)).observe((1, 0, "b"))
