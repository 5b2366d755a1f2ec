"""The same seed leaves the same trace, in another process and under another hash seed."""

import json
import os
import subprocess
import sys

from everview.testing import Simulation


def traces(hash_seed):
    done = subprocess.run(
        [sys.executable, "-m", "everview", "simulate", "--seeds", "6", "--first", "40", "--json"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["traces"]


def test_the_same_seed_gives_the_same_trace():
    first = traces("1")
    assert len(set(first)) == 6
    assert first == traces("2")
    assert first[0] == Simulation(40).run().digest


def test_another_seed_gives_another_history():
    assert Simulation(1).case.steps != Simulation(2).case.steps
