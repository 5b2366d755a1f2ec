"""Random pipelines: on devices with crashes between any two statements, on Spark with kill −9 of the driver.

On devices: partitions, triggers, hollow replicas. Every twentieth case is on Spark: `tests.streams.kills`.
"""

import functools
import random
import tempfile
from pathlib import Path

from tests.streams.kills import History
from tests.streams.worlds import alone, apart

from everview.engines.spark.session import start_session

EVERY = 20
"""How many cases there are for one on Spark, which takes ten seconds."""

_session = functools.cache(functools.partial(start_session, master="local[2]"))
_tally = {"cases": 0, "crashes": 0}


def case(seed):
    with tempfile.TemporaryDirectory(prefix="everview-pipelines-") as name:
        folder = Path(name)
        if seed % EVERY == 0:
            return killed(seed, folder)
        return alone(seed, folder) + apart(seed, folder)


def killed(seed, folder):
    """Up to three drivers of one pipeline, each killed; then one that goes through."""
    rng = random.Random(seed)
    history = History(folder, seed)
    times = rng.choice([1, 2, 3])
    for _ in range(times):
        large = rng.random() < 0.3
        if rng.random() < 0.5:
            history.run(create=rng.randint(1, 9), large=large)
        else:
            history.run(files=rng.randrange(3), seconds=rng.uniform(0, 0.5), large=large)
    history.check(_session())
    return times


def tally(crashes):
    _tally["cases"] += 1
    _tally["crashes"] += crashes


def summary():
    return f"{_tally['cases']:,} worlds, {_tally['crashes']:,} crashes"
