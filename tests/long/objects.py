"""Kill −9 of a hub in an object store, over HTTP, whose requests fail now and then; see `hub_kills`."""

import functools
import random
import tempfile
from pathlib import Path

from tests.hub.kills import STAGES, History
from tests.hub.s3 import bucket

from everview.engines.spark.session import start_session

LIMIT = 3.0
"""After how many seconds the lease of a hub that was killed has run out."""

_session = functools.cache(functools.partial(start_session, master="local[2]"))


def case(seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, bucket(Path(folder) / "s3", page=5) as s3:
        told = History(s3.path("hub"), seed, uri=s3.uri(), options=s3.options(), limit=LIMIT)
        for kind in ("slow down", "cut", "lose", "unsure"):
            s3.fail(kind, times=10**6, chance=rng.choice((0, 0.01, 0.03)))
        executors = rng.random() < 0.2
        most = 2 if executors else 5  # a refresh by executors takes seconds
        if rng.random() < 0.6:
            told.run(stage=rng.choice([*STAGES]), passes=rng.randrange(most), executors=executors)
        else:
            told.run(refreshes=rng.randrange(most), seconds=rng.uniform(0, 0.4), executors=executors)
        told.check(_session())
