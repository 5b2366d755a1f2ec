import logging
from pathlib import Path

import pytest

from everview.testing.worlds import KINDS, Simulation, dump_case, load_case, minimise, random_case
from everview.testing.worlds.runs import Failure

CASES = sorted((Path(__file__).parents[2] / "regressions" / "worlds").glob("*.json"))


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_worlds_with_faults(first):
    for seed in range(first, first + 25):
        Simulation(seed).run()


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_worlds_with_a_liar(first):
    for seed in range(first, first + 30):
        Simulation(seed, kind="liar").run()


def test_stores_that_went_back_and_meet_anybody():
    for seed in range(20):
        Simulation(seed, kind="wild").run()


def test_many_rows():
    Simulation(0, kind="large").run()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_once_went_wrong(path):
    Simulation(case=load_case(path.read_bytes())).run()


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_the_same_when_it_is_written_and_read(kind):
    case = random_case(3, kind)
    assert load_case(dump_case(case)) == case


def test_a_seed_decides_everything():
    one, other = (Simulation(11).run() for _ in range(2))
    assert one.digest == other.digest
    assert one.counts == other.counts


def first_failure():
    for seed in range(60):
        try:
            Simulation(seed).run()
        except Failure as failure:
            if failure.step < len(failure.case.steps) - 1:  # what comes later is left out at once
                return failure
    raise AssertionError("nobody noticed")


def test_a_failing_case_becomes_small(monkeypatch):
    from everview.engines.sqlite.rows import taking

    monkeypatch.setattr(taking.Taking, "_log", lambda *_: None)
    found = first_failure()
    assert len(minimise(found.case, seconds=5).steps) < len(found.case.steps)
