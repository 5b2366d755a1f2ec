"""The simulator finds what it is for: each rule, left out of the real code, is caught."""

import pytest
from tests.testing.simulation.mutants import FIRST, MUTANTS

from everview.testing.simulation import Failure, Simulation

SEEDS = 60
"""Within so many worlds, each with the faults that the rule is for."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_rule_that_is_left_out_is_missed(mutant, monkeypatch):
    mutant(monkeypatch.setattr)
    first = FIRST.get(mutant, 0)
    assert any(fails(seed, MUTANTS[mutant]) for seed in range(first, first + SEEDS))


def fails(seed, faults):
    try:
        Simulation(seed, faults=faults).run()
    except Failure:
        return True
    return False
