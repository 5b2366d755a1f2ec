"""The device's fuzzer through the whole hub: random programs and histories, compared after every refresh.

Reference and SQLite run the same pairs, so that all three agree after every step. Most refreshes are on the
driver. Those of every fifth pair go by turns to the driver and to the executors, each of which finds what the
other has written.
"""

import itertools
from contextlib import nullcontext

import pytest
from tests.hub.quick import quickly

from everview.hub import Change, Hub
from everview.testing.fuzz.case import generate_case
from everview.testing.fuzz.check import check_case

PAIRS = 20
STATEMENTS = 5
BY_TURNS = 5


class HubStore:
    """A hub that refreshes after every write, as the fuzzer's checks want it; every third on executors."""

    def __init__(self, folder, spark, program, *, by_turns):
        self._hub = quickly(Hub.open(folder, program, spark=spark))
        self._hub.refresh()
        self._driver_rows = self._hub._store.driver_rows
        self._executors = itertools.cycle([False, False, by_turns])
        self.executed = 0

    def insert(self, relation, rows):
        self._hub.insert(relation, rows)
        return self._change(relation).appeared

    def delete(self, relation, rows):
        self._hub.delete(relation, rows)
        return self._change(relation).disappeared

    def _change(self, relation):
        executors = next(self._executors)
        self.executed += executors
        self._hub._store.driver_rows = 0 if executors else self._driver_rows
        changes = self._hub.refresh().changes
        self._hub._store.driver_rows = self._driver_rows
        return changes.get(relation, Change(0, 0))

    def together(self):
        return nullcontext()

    def rows(self, name):
        return self._hub.rows(name)

    def faults(self):
        return []

    def close(self):
        self._hub.close()


@pytest.mark.spark
def test_random_programs_and_histories(spark, tmp_path):
    stores = []
    for pair in range(PAIRS):
        seed = 2 * pair
        case = generate_case(seed, statements=STATEMENTS)
        by_turns = pair % BY_TURNS == 0

        def opened(program, folder=tmp_path / str(seed), by_turns=by_turns):
            stores.append(HubStore(folder, spark, program, by_turns=by_turns))
            return stores[-1]

        check_case(case, opened)
        check_case(case)
    assert sum(store.executed for store in stores) >= PAIRS // BY_TURNS
