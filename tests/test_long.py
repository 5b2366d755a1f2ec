"""A short slice of every long target."""

import importlib
import subprocess
import sys

import pytest
from tests.long.__main__ import areas, outcomes

SLICE = {
    "algebra": 60,
    "changes": 0,  # one is in tests/hub/test_changes.py
    "cluster": 0,  # a few are in tests/hub/test_cluster.py
    "console": 0,  # eight of each are in tests/engines/sqlite
    "device": 20,
    "gate": 0,  # a few are in tests/hub/test_gate.py
    "hub_devices": 0,  # a short one is in tests/hub/test_devices.py
    "hub_kills": 0,  # five kills are in tests/hub/test_kills.py
    "kills": 50,
    "compared": 0,  # 240 are in tests/replication/compared
    "located": 0,  # some are in tests/located
    "located_processes": 0,  # a short one is in tests/located/test_processes.py
    "objects": 0,  # ends at stages are in tests/hub/test_objects.py
    "path_vector": 0,  # one is in tests/located/test_example.py
    "pipelines": 0,  # some are in tests/streams/test_titan.py
    "planner": 10,
    "processes": 1,
    "recursion": 0,  # 1,000 are in tests/engines/sqlite/recursion
    "recursion_hub": 0,  # 12 are in tests/hub/test_recursing.py
    "recursion_spark": 0,  # 25 programs are in tests/hub/test_rules.py
    "rule": 0,  # 300 of each kind are in tests/spec
    "simulation": 5,
    "three_engines": 0,  # 300 pairs are in tests/engines/three
    "trips": 0,  # one kill is in tests/hub/test_trips.py
    "evolution": 0,  # some are in tests/evolution
    "event_windows": 0,  # a few are in tests/engines/sqlite/windows
    "windows": 40,  # 300 more are in tests/streams/windows/test_worlds.py
    "wire": 20_000,
}


@pytest.mark.parametrize("area", areas())
def test_a_slice_of_every_long_target(area):
    case = importlib.import_module(f"tests.long.{area}").case
    for seed in range(SLICE[area]):
        case(seed)


def test_the_long_target_counts_its_cases():
    done = subprocess.run(
        [sys.executable, "-m", "tests.long", "algebra", "--cases", "3", "--seed", "7"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "3 passed, 0 failed"


def test_the_long_target_uses_several_processes_and_reports_what_failed():
    run = [sys.executable, "-m", "tests.long", "simulation", "--workers", "2", "--cases", "3", "--seed", "0"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    *counts, last = done.stdout.splitlines()
    assert last == "3 passed, 0 failed"
    assert any(line.split()[-1] == "writes" for line in counts)


def test_a_case_that_fails_is_told_with_its_seed(monkeypatch):
    def case(seed):
        if seed == 1:
            raise ValueError("no")
        return seed

    monkeypatch.setattr("tests.long.algebra.case", case)
    told = list(outcomes("algebra", None, range(3), 1))
    assert [(seed, found) for seed, found, error in told if error is None] == [(0, 0), (2, 2)]
    assert "ValueError: no" in told[1][2]
