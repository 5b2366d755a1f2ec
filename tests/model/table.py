"""The table of shortcuts: `python -m tests.model.table 1000 500` prints first failing seeds and failures."""

import sys

from tests.model.driver import STORM, run
from tests.model.ground import WrongError
from tests.model.histories import HISTORIES
from tests.model.relations import TwoValuesError
from tests.model.shortcuts import SHORTCUTS

FIRST = {
    "keyed lengths": 1,
    "unique ids for sets": 35,
    "add-wins reuse": 90,
    "bag sums": 1,
    "future now": 77,
    "one cursor": 27,
    "no gap check": 2,
    "no tags": 85,
    "keep incarnation": 1,
    "torn pages": 0,
    "pages at once": 0,
    "cursor first": 1,
    "own rows only": 0,
    "echo": 0,
    "drop and advance": 28,
    "collect at once": 1,
    "unlisted join": 304,
    "views do not count": 212,
    "restart at 1": 369,
    "floor stays": 10_113,
    "accept covered": 10_016,
    "ignore clocks": 211,
    "merge on return": 652,
    "no lift": 10_113,
    "send before joining": 10_090,
    "claim for views": 6,
    "id sets": 0,
    "named lengths only": 6,
    "passing keys only": 141,
    "no revival": 212,
    "one-sided join": 0,
    "delta only": 0,
    "no lengths": 0,
    "vectors for views": 0,
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
