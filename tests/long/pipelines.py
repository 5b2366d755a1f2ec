"""Random pipelines on devices: partitions, triggers, hollow replicas, crashes between any two statements."""

import tempfile
from pathlib import Path

from tests.streams.worlds import alone, apart

PARALLEL = True

_tally = {"cases": 0, "crashes": 0}


def case(seed):
    with tempfile.TemporaryDirectory(prefix="everview-pipelines-") as folder:
        return alone(seed, Path(folder)) + apart(seed, Path(folder))


def tally(crashes):
    _tally["cases"] += 1
    _tally["crashes"] += crashes


def summary():
    return f"{_tally['cases']:,} worlds, {_tally['crashes']:,} crashes"
