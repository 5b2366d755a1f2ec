"""A short slice of every long target."""

import importlib
import subprocess
import sys

import pytest
from tests.long.__main__ import areas

SLICE = {
    "algebra": 60,
    "device": 20,
    "kills": 50,
    "model": 1,
    "planner": 10,
    "processes": 1,
    "simulation": 5,
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
