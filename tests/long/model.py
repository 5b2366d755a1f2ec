"""The model of replication: 40 random runs a case, and a walk into the states of four writes each."""

import random

from tests.model.driver import run
from tests.model.explore import Explorer


def case(seed):
    for each in range(40 * seed, 40 * (seed + 1)):
        run(each)
    relation = "RKBW"[seed % 4]
    Explorer(relation, operations=4, limit=2_000, looks=3, rng=random.Random(seed)).run()
