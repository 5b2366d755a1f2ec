"""The rules of partial aggregates survive random runs; each shortcut, put back, is caught."""

import pytest
from tests.model.partials import SHORTCUTS, WrongError, run_partials


def test_the_rules_survive():
    for seed in range(200):
        run_partials(seed)


@pytest.mark.parametrize("shortcut", sorted(SHORTCUTS))
def test_a_random_run_catches_the_shortcut(shortcut):
    for seed in range(300):
        try:
            run_partials(seed, [shortcut])
        except WrongError:
            return
    pytest.fail(f"no run shows what is wrong with: {SHORTCUTS[shortcut]}")
