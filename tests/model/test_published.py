"""The rules of published views survive random runs; each shortcut, put back, is caught."""

import pytest
from tests.model.published import SHORTCUTS, WrongError, run_published


def test_the_rules_survive():
    for seed in range(400):
        run_published(seed)


@pytest.mark.parametrize("shortcut", sorted(SHORTCUTS))
def test_a_random_run_catches_the_shortcut(shortcut):
    for seed in range(300):
        try:
            run_published(seed, [shortcut])
        except WrongError:
            return
    pytest.fail(f"no run shows what is wrong with: {SHORTCUTS[shortcut]}")
