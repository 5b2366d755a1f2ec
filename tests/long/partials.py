"""Partial aggregates: ten runs of the model a case, and a random history of sites in files."""

import tempfile
from pathlib import Path

from tests.model.partials import run_partials
from tests.replication.partials.test_random import run


def case(seed):
    for each in range(10 * seed, 10 * (seed + 1)):
        run_partials(each)
    with tempfile.TemporaryDirectory() as folder:
        run(seed, Path(folder), steps=60)
