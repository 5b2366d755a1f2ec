"""500 worlds: 495 with faults, and 5 without any but with over 100,000 rows each."""

from collections import Counter

import pytest
from tests.testing.simulation.folders import REGRESSIONS

from everview.testing import Simulation
from everview.testing.simulation import load_case

CHUNK = 15


@pytest.mark.parametrize("first", range(0, 495, CHUNK))
def test_worlds_with_faults(first):
    for seed in range(first, first + CHUNK):
        Simulation(seed).run()


@pytest.mark.parametrize("seed", range(5))
def test_large_worlds_without_faults(seed):
    result = Simulation(seed, large=True).run()
    assert result.counts["rows loaded"] > 100_000


def test_a_world_without_faults_is_quiet():
    counts = Counter()
    for seed in range(5):
        counts += Simulation(seed, faults=()).run().counts
    assert counts["writes"] > 20
    assert not [what for what in counts if what.startswith(("messages lost", "crashes", "restored"))]


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_once_went_wrong(path):
    Simulation(case=load_case(path.read_text())).run()
