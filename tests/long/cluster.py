"""A hub on a standalone cluster of this machine: random programs, and Workers that are killed in a refresh.

The executors' Python has no everview; see `tests.hub.cluster`.
"""

import atexit
import functools
import random
import shutil
import tempfile
from pathlib import Path

from tests.hub import on_cluster
from tests.hub.cluster import Cluster, bare_python

STATEMENTS = 5
ROWS = 60_000


@functools.cache
def _cluster():
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    cluster = Cluster(folder)
    atexit.register(cluster.stop)
    return cluster, bare_python(folder / "python")


def case(seed):
    cluster, python = _cluster()
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if rng.random() < 0.8:
            on_cluster.fuzzed(cluster.url, python, folder, [seed], STATEMENTS)
            return
        worker = cluster.workers.pop(rng.randrange(2))
        lost = on_cluster.worker_lost(cluster.url, python, folder, worker.pid, ROWS)
        worker.kill()
        cluster.workers.append(cluster.start_worker())
        assert lost[-1] == [(ROWS // on_cluster.PLACES, on_cluster.PLACES)]
