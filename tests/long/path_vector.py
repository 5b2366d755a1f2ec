"""The path-vector example over random networks: after every change its tables are those of one site."""

import random

from examples.path_vector import Network, run


def case(seed):
    rng = random.Random(f"path vectors {seed}")
    network = Network(sites=rng.choice([6, 8, 12]), chords=rng.choice([1, 2, 4]), hops=5, seed=seed)
    try:
        for _ in run(network, changes=12):
            pass
    finally:
        network.close()
