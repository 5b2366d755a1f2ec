"""The rules of windows that close for certain survive random runs; each shortcut, put back, is caught."""

import pytest
from tests.model.windows import SHORTCUTS, WrongError, heard_by_markers_only, run_windows


def test_the_rules_survive_and_windows_do_become_final_on_the_way():
    worlds = [run_windows(seed) for seed in range(150)]
    assert sum(site.late for world in worlds for site in world.sites.values()) > 150
    assert any("copy" in world.sites for world in worlds)


FIRST = {
    "marker alone": 21,
    "one vector": 21,
    "late events": 0,
    "late deletes": 7,
    "close again": 2,
    "opening alone": 36,
    "no restating": 2852,
    "no stepping down": 12,
}
"""The first run that shows what is wrong."""

WORKED = ("markers only", "believe all")
"""What a worked history shows."""


def test_every_shortcut_is_tried():
    assert {*FIRST, *WORKED} == {*SHORTCUTS}


@pytest.mark.parametrize("shortcut", FIRST)
def test_a_random_run_catches_the_shortcut(shortcut):
    run_windows(FIRST[shortcut])
    with pytest.raises(WrongError):
        run_windows(FIRST[shortcut], [shortcut])


@pytest.mark.parametrize("shortcut", WORKED)
def test_a_worked_history_catches_the_shortcut(shortcut):
    heard_by_markers_only()
    with pytest.raises(WrongError):
        heard_by_markers_only([shortcut])
