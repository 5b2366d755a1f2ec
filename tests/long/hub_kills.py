"""Kill −9 of a hub, at a stage of its work or at any moment: what was acknowledged is there, once.

Each case is a new store, one kill, and the opening after it; see `tests.hub.kills`.
"""

import functools
import random
import tempfile
from pathlib import Path

from tests.hub.kills import STAGES, History

from everview.engines.spark.session import start_session

_session = functools.cache(functools.partial(start_session, master="local[2]"))


def case(seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        told = History(Path(folder), seed)
        executors = rng.random() < 0.2
        most = 2 if executors else 5  # a refresh by executors takes seconds
        if rng.random() < 0.6:
            told.run(stage=rng.choice([*STAGES]), passes=rng.randrange(most), executors=executors)
        else:
            told.run(refreshes=rng.randrange(most), seconds=rng.uniform(0, 0.4), executors=executors)
        told.check(_session())
