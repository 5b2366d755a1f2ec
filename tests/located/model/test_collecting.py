"""Mail from which the dead is taken: right under every schedule; and why lengths are not taken with it."""

import random

import pytest
from tests.located.model.collecting import SHORTCUTS, every_schedule, random_schedule
from tests.located.model.worlds import CIRCLE, REACH, WrongError, writes

CHAIN = """
p(@1) :- a(@0).
q(@2) :- p(@1).
r(@3) :- q(@2).
"""


def turns(text):
    """One fact that comes and goes."""
    return tuple(("insert" if sign == "+" else "delete", ("a", "0")) for sign in text)


CASES = {
    "appendix b, and back": (CIRCLE, "012", turns("+-+"), 2, False),
    "a line of neighbours": (CHAIN, "0123", turns("+-"), 1, True),
}


def run(name, shortcuts=frozenset()):
    text, places, told, collects, line = CASES[name]
    return every_schedule(text, places, told, collects, shortcuts, line=line)


@pytest.mark.parametrize("name", sorted(CASES))
def test_collecting_is_right_under_every_schedule(name):
    assert run(name) > 400


def test_collecting_is_right_under_random_schedules():
    for seed in range(10):
        rng = random.Random(seed)
        told = [rng.choice(writes("+ab +ab +bc +ca +ba -ab -bc -ba")) for _ in range(7)]
        random_schedule(REACH, "abc", told, rng)


@pytest.mark.parametrize(
    ("shortcut", "name"),
    [
        ("sent for good", "appendix b, and back"),
        ("no answer", "appendix b, and back"),
        ("lengths too", "a line of neighbours"),
    ],
)
def test_each_shortcut_is_caught(shortcut, name):
    assert shortcut in SHORTCUTS
    with pytest.raises(WrongError):
        run(name, {shortcut})
