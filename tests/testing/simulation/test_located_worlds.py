"""Worlds of sites that run a located program: all come right; each rule, left out of the code, is missed."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.testing.simulation.located_mutants import COUNTING, PROVENANCE

from everview.located.provenance import ProvenancePlace
from everview.testing.simulation import Failure
from everview.testing.simulation.located import LOCATED_FAULTS, LocatedSimulation, load_located

CHUNK = 6
WITHIN = 12
"""Worlds of its mode in which a mutant is found, from the one that is named."""


@pytest.mark.parametrize("first", range(0, 18, CHUNK))
def test_places_come_to_what_one_site_would_show(first):
    for seed in range(first, first + CHUNK):
        LocatedSimulation(seed).run()


def test_much_happens_in_a_located_world():
    counts = Counter()
    for seed in (4, 6, 10):
        counts += LocatedSimulation(seed, faults=LOCATED_FAULTS).run().counts
    assert counts["crashes"] + counts["crashes while opening"] > 0
    assert counts["messages"] > 100
    assert counts["derivations forgotten"] > 0
    assert not counts["too many proofs"]


@pytest.mark.parametrize("mutant", [*PROVENANCE, *COUNTING], ids=lambda mutant: mutant.__name__)
def test_a_rule_that_is_left_out_is_missed(mutant, monkeypatch):
    mutant(monkeypatch.setattr)
    first, faults = (PROVENANCE | COUNTING)[mutant]
    seeds = [seed for seed in range(first, first + 3 * WITHIN) if (seed % 3 == 2) == (mutant in COUNTING)]
    assert any(fails(seed, faults) for seed in seeds)


def fails(seed, faults):
    try:
        LocatedSimulation(seed, faults=faults).run()
    except Failure:
        return True
    return False


REGRESSIONS = sorted((Path(__file__).parents[2] / "regressions" / "located").glob("*.json"))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_once_went_wrong(path):
    LocatedSimulation(case=load_located(path.read_text())).run()


def test_what_a_place_knew_before_it_went_back_it_tells(monkeypatch):
    monkeypatch.setattr(ProvenancePlace, "_catch_up", lambda *_: None)
    (path,) = [path for path in REGRESSIONS if path.stem.startswith("went-back")]
    with pytest.raises(Failure, match="something to say"):
        LocatedSimulation(case=load_located(path.read_text())).run()


def test_the_same_seed_gives_the_same_trace():
    done = subprocess.run(
        [sys.executable, "-m", "everview", "simulate", "--located", "--seeds", "2", "--first", "1", "--json"],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["traces"] == [LocatedSimulation(seed).run().digest for seed in (1, 2)]
