import logging

import pytest
from tests.replication.compared.histories import random_case, run
from tests.replication.compared.twins import Differs
from tests.testing.worlds import mutants

from everview.errors import StoreError


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def compare(seeds):
    for seed in seeds:
        run(*random_case(seed))


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_stores_do_what_the_rule_says(first):
    compare(range(first, first + 40))


BROKEN = (
    mutants.removals_of_rows_never_held_are_dropped,
    mutants.rows_that_were_seen_are_taken_again,
    mutants.a_gap_in_the_log_is_not_noted,
    mutants.forgotten_removals_are_not_missed,
)


@pytest.mark.parametrize("mutant", BROKEN, ids=lambda one: one.__name__)
def test_a_store_that_does_not_is_found(mutant, monkeypatch):
    mutant(monkeypatch.setattr)
    with pytest.raises((Differs, StoreError)):  # SQLite refuses what is twice
        compare(range(300))
