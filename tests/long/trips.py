"""A Spark job that copies a view into a bag, killed with −9 at random and started again, 20 times a case."""

import functools
import tempfile

from tests.hub.trips import Trip

from everview.engines.spark.session import start_session

KILLS = 20

_session = functools.cache(functools.partial(start_session, master="local[2]"))
_batches = []


def case(seed):
    with tempfile.TemporaryDirectory() as folder, Trip(folder, _session(), seed) as trip:
        for _ in range(KILLS):
            trip.run_and_kill()
        trip.settle()
        return trip.batches(), trip.number


def tally(found):
    _batches.append(found)


def summary():
    return "\n".join(
        f"{KILLS} kills, {batches} batches of {plays} rows, each in once" for batches, plays in _batches
    )
