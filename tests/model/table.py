"""The table of shortcuts: `python -m tests.model.table 1000` prints first failing seeds and failures."""

import sys

from tests.model.driver import run
from tests.model.ground import WrongError
from tests.model.histories import HISTORIES
from tests.model.relations import TwoValuesError
from tests.model.shortcuts import SHORTCUTS

FIRST = {}
"""Shortcut → a seed that catches it; those missing are caught by a history."""


def fails(seed, shortcut):
    try:
        run(seed, frozenset([shortcut]))
    except (WrongError, TwoValuesError):
        return True
    return False


def first_failure(shortcut, seeds):
    """The first seed that catches a shortcut, or None."""
    return next((seed for seed in seeds if fails(seed, shortcut)), None)


def main(runs):
    """Every shortcut over the same seeds, then the right rules."""
    out = sys.stdout
    for shortcut, meaning in SHORTCUTS.items():
        failing = [seed for seed in range(runs) if fails(seed, shortcut)]
        first = failing[0] if failing else "history" if shortcut in HISTORIES else "none"
        out.write(f"{shortcut:22} {first!s:>8} {1000 * len(failing) // runs:>6}   {meaning}\n")
        out.flush()
    for seed in range(runs):
        run(seed)
    out.write(f"{'the right rules':22} {'-':>8} {0:>6}   in {runs} runs\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
