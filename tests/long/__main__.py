"""Run one area's random cases until stopped, or a given number of them, with progress."""

import argparse
import functools
import gc
import importlib
import itertools
import multiprocessing
import os
import pkgutil
import signal
import sys
import time
import traceback

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tests import long

TOLD = 100
"""After how many cases a log, which shows no bar, has another line."""


def areas():
    return sorted(m.name for m in pkgutil.iter_modules(long.__path__) if m.name != "__main__")


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.long", description=__doc__)
    parser.add_argument("area", choices=areas())
    parser.add_argument("--cases", type=int, default=0, help="how many cases (0: until stopped)")
    parser.add_argument("--seconds", type=float, help="how long a case lasts, in areas that run on a clock")
    parser.add_argument("--workers", type=int, help="how many processes, in areas that can use them")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first case's seed")
    arguments = parser.parse_args()
    area = importlib.import_module(f"tests.long.{arguments.area}")
    workers = arguments.workers or (os.cpu_count() or 1 if getattr(area, "PARALLEL", False) else 1)
    seeds = itertools.count(arguments.seed)
    if arguments.cases:
        is_large = getattr(area, "is_large", lambda _seed: False)  # these come last: few of them fail
        seeds = sorted(itertools.islice(seeds, arguments.cases), key=is_large)
    passed = failed = 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was found until then is told
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns) as progress:
            task = progress.add_task(
                f"{arguments.area}, from seed {arguments.seed}", total=arguments.cases or None
            )
            for seed, found, error in outcomes(arguments.area, arguments.seconds, seeds, workers):
                if error is None:
                    passed += 1
                    if found is not None and hasattr(area, "tally"):
                        area.tally(found)
                else:
                    failed += 1
                    again = f"python -m tests.long {arguments.area} --cases 1 --seed {seed}"
                    progress.console.print(f"{error}\nseed {seed} failed; again with: {again}", markup=False)
                progress.advance(task)
                if not progress.console.is_terminal and (passed + failed) % TOLD == 0:
                    progress.console.print(f"{passed:,} passed, {failed:,} failed so far", markup=False)
    except KeyboardInterrupt:
        pass
    if hasattr(area, "summary"):
        sys.stdout.write(f"{area.summary()}\n")
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0


def outcomes(area, seconds, seeds, workers):
    """Yield (seed, what it found, what went wrong) as cases end, in this process or in several."""
    run = functools.partial(attempt, area, seconds)
    if workers == 1:
        yield from map(run, seeds)
        return
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(workers, gc.set_threshold, (50_000, 10, 10)) as pool:
        yield from pool.imap_unordered(run, seeds)
        pool.close()  # who is waiting for more goes home, and is not interrupted
        pool.join()


def attempt(area, seconds, seed):
    """Run one case; other than by returning it never ends."""
    case = importlib.import_module(f"tests.long.{area}").case
    try:
        return seed, (case(seed) if seconds is None else case(seed, seconds=seconds)), None
    except Exception:  # noqa: BLE001 - it is told with its seed
        return seed, None, traceback.format_exc()


if __name__ == "__main__":
    sys.exit(main())
