"""Worlds of sites that run different versions of a program, meet, and go over one by one.

Every other one is a simulation, with all the faults that these have.
"""

import logging
import tempfile
from collections import Counter
from pathlib import Path

from tests.evolution.world import run

from everview.testing import Simulation

PARALLEL = True
COUNTS = Counter()


def case(seed):
    logging.getLogger("everview").setLevel(logging.ERROR)
    if seed % 2:
        counts = Simulation(seed, evolving=True).run().counts
        return {"simulated": 1, "migrations": counts["migrations"], "messages": counts["messages"]}
    with tempfile.TemporaryDirectory() as folder:
        return run(seed, Path(folder), happenings=60)


def tally(found):
    COUNTS.update(found)


def summary():
    return ", ".join(f"{count:,} {name}" for name, count in COUNTS.items())
