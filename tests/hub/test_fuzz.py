"""The device's fuzzer on the hub: random programs and histories, compared after every refresh."""

import itertools
from contextlib import nullcontext

import pytest
from tests.hub.quick import quickly

from everview.engines.spark.relational import compile_plan
from everview.errors import ProgramError
from everview.hub import Change, Hub
from everview.hub.tables import catalog
from everview.planner.circuit.parts import plans_of
from everview.testing.fuzz.case import generate_case
from everview.testing.fuzz.check import check_case

PAIRS = 20
STATEMENTS = 2
SHORT = 40_000
"""Programs whose SQL is longer are passed over: Spark takes more time to plan than to run them."""


class HubStore:
    """A hub that refreshes after every write, as the fuzzer's checks want it."""

    def __init__(self, folder, spark, program):
        self._hub = quickly(Hub.open(folder, program, spark=spark))
        self._hub.refresh()

    def insert(self, relation, rows):
        self._hub.insert(relation, rows)
        return self._change(relation).appeared

    def delete(self, relation, rows):
        self._hub.delete(relation, rows)
        return self._change(relation).disappeared

    def _change(self, relation):
        return self._hub.refresh().changes.get(relation, Change(0, 0))

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
    checked, refused = 0, 0
    for seed in itertools.count(0, 2):
        case = generate_case(seed, statements=STATEMENTS)
        if not is_short(case):
            continue
        try:
            check_case(case, lambda program, seed=seed: HubStore(tmp_path / str(seed), spark, program))
        except ProgramError:
            refused += 1
            continue
        checked += 1
        if checked == PAIRS:
            break
    assert refused <= 2 * PAIRS


def is_short(case):
    circuit = catalog(case.program).circuit

    def text(view):
        return "".join(compile_plan(plan, lambda scan: scan.name) for plan in plans_of(circuit, view))

    try:
        return sum(len(text(view)) for view in case.program.views) <= SHORT
    except ProgramError:
        return True  # the hub itself is to refuse it
