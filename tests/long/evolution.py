"""Worlds of sites that run different versions of a program, meet, and go over one by one."""

import logging
import tempfile
from collections import Counter
from pathlib import Path

from tests.evolution.world import run

PARALLEL = True
COUNTS = Counter()


def case(seed):
    logging.getLogger("everview").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        return run(seed, Path(folder), happenings=60)


def tally(found):
    COUNTS.update(found)


def summary():
    return ", ".join(f"{count:,} {name}" for name, count in COUNTS.items())
