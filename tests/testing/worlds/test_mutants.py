import logging

import pytest
from tests.testing.worlds import mutants

from everview.testing.worlds import Failure, Simulation

WORLDS = 60


def finds(kind):
    for seed in range(WORLDS):
        try:
            Simulation(seed, kind=kind).run()
        except Failure as failure:
            return failure
    return None


@pytest.mark.parametrize("mutant", mutants.HONEST, ids=lambda one: one.__name__)
def test_a_rule_left_out_is_noticed(mutant, monkeypatch):
    logging.disable()
    try:
        mutant(monkeypatch.setattr)
        assert finds("")
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("mutant", mutants.LYING, ids=lambda one: one.__name__)
def test_a_defence_left_out_is_noticed(mutant, monkeypatch):
    logging.disable()
    try:
        mutant(monkeypatch.setattr)
        assert finds("liar")
    finally:
        logging.disable(logging.NOTSET)
