"""The table of shortcuts: `python -m tests.model.table 1000 500` prints first failing seeds and failures."""

import sys

from tests.model.driver import STORM, run
from tests.model.ground import WrongError
from tests.model.histories import HISTORIES
from tests.model.relations import TwoValuesError
from tests.model.shortcuts import SHORTCUTS

FIRST = {
    "keyed lengths": 1,
    "unique ids for sets": 46,
    "add-wins reuse": 18,
    "bag sums": 1,
    "one cursor": 114,
    "no gap check": 19,
    "no tags": 10_044,
    "keep incarnation": 58,
    "torn pages": 288,
    "pages at once": 4,
    "cursor first": 0,
    "own rows only": 1,
    "echo": 6,
    "drop and advance": 10_035,
    "collect at once": 1,
    "unlisted join": 10_018,
    "views do not count": 10_135,
    "restart at 1": 10_006,
    "send before joining": 23,
    "claim for views": 38,
    "one group": 76,
    "adopt the name": 76,
    "leavers retire": 116,
    "listed by name": 6_133,
    "views wait": 88,
    "id sets": 49,
    "named lengths only": 0,
    "passing keys only": 0,
    "no revival": 61,
    "one-sided join": 38,
    "delta only": 0,
    "no lengths": 17,
    "vectors for views": 17,
}
"""Shortcut → a seed that catches it; from 10,000 on in a storm. Those missing are caught by a history."""


def fails(seed, shortcut):
    try:
        run(seed, frozenset([shortcut]))
    except (WrongError, TwoValuesError):
        return True
    return False


def first_failure(shortcut, seeds):
    """The first seed that catches a shortcut, or None."""
    return next((seed for seed in seeds if fails(seed, shortcut)), None)


def main(runs, storms):
    """Every shortcut over the same seeds, ordinary and in a storm, then the right rules."""
    out, counts = sys.stdout, ((range(runs), runs), (range(STORM, STORM + storms), storms))
    for shortcut, meaning in SHORTCUTS.items():
        failing = [[seed for seed in seeds if fails(seed, shortcut)] for seeds, _ in counts]
        first = next((seeds[0] for seeds in failing if seeds), "history" if shortcut in HISTORIES else "none")
        shares = [1000 * len(seeds) // total for seeds, (_, total) in zip(failing, counts, strict=True)]
        out.write(f"| {shortcut} | {meaning} | {first} | {shares[0]} | {shares[1]} |\n")
        out.flush()
    for seeds, _ in counts:
        for seed in seeds:
            run(seed)
    out.write(f"the right rules fail in none of {runs} and {storms} runs\n")


if __name__ == "__main__":
    main(*[int(argument) for argument in sys.argv[1:]] or (1000, 500))
