"""Run one area's random cases until stopped, or a given number of them, with progress."""

import argparse
import functools
import importlib
import itertools
import pkgutil
import sys
import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tests import long


def areas():
    return sorted(m.name for m in pkgutil.iter_modules(long.__path__) if m.name != "__main__")


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.long", description=__doc__)
    parser.add_argument("area", choices=areas())
    parser.add_argument("--cases", type=int, default=0, help="how many cases (0: until stopped)")
    parser.add_argument("--seconds", type=float, help="how long a case lasts, in areas that run on a clock")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first case's seed")
    arguments = parser.parse_args()
    area = importlib.import_module(f"tests.long.{arguments.area}")
    case = area.case
    if arguments.seconds is not None:
        case = functools.partial(case, seconds=arguments.seconds)
    seeds = itertools.count(arguments.seed)
    if arguments.cases:
        seeds = itertools.islice(seeds, arguments.cases)
    done = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns) as progress:
            task = progress.add_task(
                f"{arguments.area}, from seed {arguments.seed}", total=arguments.cases or None
            )
            for seed in seeds:
                try:
                    case(seed)
                except Exception:
                    again = f"python -m tests.long {arguments.area} --cases 1 --seed {seed}"
                    progress.console.print(f"seed {seed} failed; again with: {again}")
                    raise
                done += 1
                progress.advance(task)
    except KeyboardInterrupt:
        pass
    if hasattr(area, "summary"):
        sys.stdout.write(f"{area.summary()}\n")
    sys.stdout.write(f"{done} passed, 0 failed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
