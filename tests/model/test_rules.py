"""The right rules survive the driver and the histories; each shortcut, put back, is caught."""

from collections import Counter

import pytest
from tests.model.clocks import run_clocks
from tests.model.copies import OwnedCopies, run_copies
from tests.model.disasters import run_disasters
from tests.model.driver import STORM, run
from tests.model.ground import WrongError
from tests.model.guests import Guests
from tests.model.histories import HISTORIES
from tests.model.losses import run_losses
from tests.model.shortcuts import RIGHT, SHORTCUTS
from tests.model.table import FIRST, fails
from tests.model.transactions import run_transactions


@pytest.mark.parametrize("block", range(4))
def test_the_right_rules_survive(block):
    for seed in [*range(150 * block, 150 * (block + 1)), *((3_734, 5_857, 8_680) if block == 0 else ())]:
        run(seed)


def test_the_right_rules_survive_a_storm():
    """Among them runs that found rules missing: rewound and pulling first, bags and keys on return."""
    for seed in [*range(STORM, STORM + 120), 10_027, 10_524, 11_893]:
        run(seed)


def test_the_right_rules_survive_copies():
    """Among them copies of members, which met one who had only heard the name of their group; and copies of
    copies.
    """
    for seed in [*range(100), 124, 192, 281, 288, 290, 321, 574, 1043]:
        run_copies(seed)


def test_the_right_rules_survive_copies_of_rows_that_have_owners():
    """Among them runs in which who comes over brings the death of another's row, or has forgotten it."""
    for seed in [*range(60), 181, 231, 275, 281, 284, 1205]:
        run_copies(seed, kind=OwnedCopies)
    for seed in (181, 231, 1205):
        with pytest.raises(WrongError):
            run_copies(seed, frozenset(["speak for others"]), kind=OwnedCopies)


def test_the_right_rules_survive_guests():
    """Among them one who waits for the writer of a file, and meets others."""
    counts = Counter()
    for seed in [*range(150), 679]:
        counts += run_copies(seed, kind=Guests)
    assert counts["provisional"] > 50
    with pytest.raises(WrongError, match="a guest waits"):
        run_copies(679, frozenset(["guests stay"]), kind=Guests)


def test_the_right_rules_survive_disasters():
    """Among them bags of which one store had forgotten a pair, and another had not seen the deletion."""
    for seed in range(120):
        run_disasters(seed)
    for seed in (77, 267, 288):
        run_disasters(seed, kinds="B")


def test_the_right_rules_show_no_half_of_a_transaction():
    for seed in [*range(40), 684]:
        run_transactions(seed)
    with pytest.raises(WrongError, match="half of a transaction"):
        run_transactions(684, frozenset(["one by one"]))


def test_the_right_rules_survive_losses():
    """Among them runs in which nobody but a view has heard of what is lost, or knows whose store it was."""
    counts = Counter()
    for seed in [*range(150), 3_426, 3_552, 4_340, 7_978, 21_366, 47_927]:
        counts += run_losses(seed)
    assert counts["voided"] > 10


@pytest.mark.parametrize("shortcut", sorted(FIRST))
def test_a_random_run_catches_the_shortcut(shortcut):
    run(FIRST[shortcut])
    assert fails(FIRST[shortcut], shortcut), "the driver has changed: look for another seed"


def test_clocks_that_are_set_right():
    counts = Counter()
    for seed in range(150):
        counts += run_clocks(seed)
    assert counts["set back"] > 100
    assert counts["collected"] > 100


@pytest.mark.parametrize("shortcut", sorted(HISTORIES))
def test_a_history_catches_the_shortcut(shortcut):
    HISTORIES[shortcut](RIGHT)
    with pytest.raises(WrongError):
        HISTORIES[shortcut](frozenset([shortcut]))


def test_every_shortcut_is_caught_somewhere():
    assert set(FIRST) | set(HISTORIES) == set(SHORTCUTS)


def test_a_run_is_a_function_of_its_seed():
    assert run(7) == run(7)
