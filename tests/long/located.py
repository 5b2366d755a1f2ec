"""Located rules: ten runs of models and programs a case, and a storm over sites, in memory or in files."""

import random
import tempfile
from pathlib import Path

from tests.located.model.worlds import random_counting, random_provenance
from tests.located.programs import CIRCLE, PROGRAMS, writable
from tests.located.test_cores import MODES
from tests.located.test_nodes import storm
from tests.located.test_random_programs import run as random_program
from tests.located.worlds import World

FAULTS = ["write", "sync", "sync", "deafen"]
STORMS = {
    "provenance": (6, FAULTS),
    "counting": (4, FAULTS),
    "files": (5, ["write", "write", "sync", "sync", "crash", "back_up", "restore"]),
}


def case(seed):
    for each in range(10 * seed, 10 * (seed + 1)):
        random_provenance(each)
        random_counting(each)
        for mode in MODES:
            random_program(mode, each)
    rng = random.Random(f"located {seed}")
    kind = ("provenance", "counting", "files")[seed % 3]
    # Of a rule that recurses twice, counting keeps more than there is room for as soon as links go round.
    text = PROGRAMS[rng.choice([name for name in PROGRAMS if kind != "counting" or name != "non_linear"])]
    places = "abcd"[: 3 if text is CIRCLE else rng.choice([3, 4])]
    count, happenings = STORMS[kind]
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) if kind == "files" else None
        mode = "counting" if kind == "counting" else "provenance"
        world = World(text, places, rng, mode=mode, folder=where)
        storm(world, rng, writable(text, rng, places, count), 60, happenings)
        world.settle()
        world.compare()
        world.close()
