"""`python -m everview.testing.worlds`: random worlds, until one shows something wrong."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from pathlib import Path

from everview.testing.worlds import KINDS, Failure, Simulation, dump_case, load_case, minimise


def main() -> int:
    """Run worlds; print progress, and of a failing one its seed and its smallest history."""
    parser = argparse.ArgumentParser(prog="python -m everview.testing.worlds")
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--kind", default="", choices=KINDS)
    parser.add_argument("--replay", type=Path, help="a case that was written, instead")
    parser.add_argument(
        "--patience", type=float, default=60.0, help="seconds for making a failing case small"
    )
    parser.add_argument("--keep-on", action="store_true", help="go on after a failure")
    given = parser.parse_args()
    logging.disable()  # what went back, and who differs from whom, is what these worlds are about
    if given.replay is not None:
        Simulation(case=load_case(given.replay.read_bytes())).run()
        return 0
    counts: Counter[str] = Counter()
    failed, begun = 0, time.monotonic()
    for number, seed in enumerate(range(given.seed, given.seed + given.worlds), 1):
        try:
            counts += Simulation(seed, kind=given.kind).run().counts
        except Failure as found:
            failed += 1
            print(f"seed {seed} fails: {found.problem}", flush=True)  # noqa: T201
            if not given.keep_on:
                print(dump_case(minimise(found.case, seconds=given.patience)))  # noqa: T201
                return 1
        if number % 100 == 0:
            print(f"{number} worlds, {time.monotonic() - begun:.0f} s, {failed} failed", flush=True)  # noqa: T201
    print(", ".join(f"{what}: {count:,}" for what, count in sorted(counts.items())))  # noqa: T201
    print(f"{given.worlds} worlds, {time.monotonic() - begun:.0f} s, {failed} failed")  # noqa: T201
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
