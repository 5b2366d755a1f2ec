"""Random Datalog programs on a hub: reference, SQLite and Spark agree after every refresh.

A case is several programs with a history of eight statements; the hub is opened again in the middle.
"""

import functools
import tempfile
from pathlib import Path

from tests.hub.test_rules import TOGETHER, HubStore, several

from everview.engines.spark.session import start_session
from everview.testing.fuzz.datalog import check_rules


@functools.cache
def _session():
    return start_session(master="local[2]")


def case(seed):
    drawn = several(range(seed * TOGETHER, (seed + 1) * TOGETHER), 8)
    with tempfile.TemporaryDirectory() as folder:
        check_rules(drawn, lambda program: HubStore(Path(folder) / "hub", _session(), program))
    check_rules(drawn)
