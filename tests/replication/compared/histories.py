"""Random histories of real sites and their twins."""

import random
import tempfile
from pathlib import Path

from tests.replication.compared.kinds import KINDS, program
from tests.replication.compared.twins import Real, Twins

from everview.testing.worlds import steps as do

MEMORY_DISK = Path("/dev/shm")


def random_case(seed):
    """A case, and the kinds of its relations."""
    rng = random.Random(f"compared {seed}")
    kinds = rng.choice(sorted(KINDS)), rng.choice(sorted(KINDS))
    parts = rng.random() < 0.5
    names = [f"s{number}" for number in range(rng.choice([2, 3, 3, 4]))]
    places = [
        do.Place(name, rng.choice([0, 0, 5, -900]), rng.choice(HOSTS) if parts and number else None)
        for number, name in enumerate(names)
    ]
    steps = [step for _ in range(rng.randint(15, 45)) for step in _move(rng, names, kinds)]
    return do.Case(seed, program(*map(KINDS.get, kinds)), places, steps, page_cells=rng.choice(PAGES)), kinds


HOSTS = [None, ["v"], ["v"], ["r"], ["r", "s"]]
PAGES = [1, 8, 1_000_000, 1_000_000]


def _move(rng, names, kinds):
    site, other = rng.choice(names), rng.choice(names)
    match rng.choices([*MOVES], [*MOVES.values()])[0]:
        case "write":
            count = rng.choice([1, 1, 2, 3])
            yield do.Write(site, [_operation(rng, rng.choice([0, 1]), kinds) for _ in range(count)])
            yield do.Wait(rng.choice([0, 0, 3, 3, 100 * 86_400]))
        case "sync":
            yield do.Sync(site, other)
        case "cut off":
            yield do.Sync(site, other, messages=rng.randint(1, 6))
        case "dies":
            yield do.Sync(site, other, victim=rng.choice([site, other]), crash=rng.randint(1, 150))
        case "dial":
            yield do.Dial(site, other)
        case "deliver":
            yield do.Deliver(rng.randrange(100), rng.choice(["arrives", "arrives", "doubled", "lost"]))
        case "visit":
            yield do.Visit(site)
        case "forget":
            yield do.Forget(site)
        case "backup":
            yield do.Backup(site)
        case "restore":
            yield do.Restore(site, rng.choice(["in place", "moved"]))
        case "copy":
            names.append(f"c{len(names)}")
            yield do.Copy(site, names[-1])


MOVES = {
    "write": 40,
    "sync": 20,
    "cut off": 5,
    "dies": 4,
    "dial": 6,
    "deliver": 24,
    "visit": 8,
    "forget": 5,
    "backup": 4,
    "restore": 4,
    "copy": 1,
}


def _operation(rng, at, kinds):
    row = [rng.randrange(3), *(rng.randrange(4) for _ in range(KINDS[kinds[at]].values))]
    return rng.choice(["insert", "insert", "delete"]), "rs"[at], row


def run(case, kinds):
    """Let a case happen, compare who acted after each step, and all in the end; return what happened."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        world = Real(case, Path(folder))
        try:
            twins = Twins(world, kinds)
            for step in case.steps:
                world.pass_time(0)
                for name in sorted(twins.do(step)):
                    twins.compare(name)
            for _ in range(2):
                for one in sorted(world.sites):
                    for other in sorted(world.sites):
                        twins.do(do.Sync(one, other))
            for name in world.sites:
                twins.compare(name)
        finally:
            world.close()
        return world.counts
