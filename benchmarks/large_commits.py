"""Commits of many rows against SQLite, which loads the same rows into bare tables and asks the queries anew.

Each shape is a program of one view. A store in memory gets `count` rows in one transaction, as many again in
a second one, and loses the first in a third. Another, in a file, gets the first rows before it gets the view:
it is migrated. After each the view is compared with SQLite's answer over the rows that there are then. Sizes
double. A shape runs in a process of its own, and is stopped at a commit that
takes longer than the limit: it counts as having taken that long then, so what is quadratic is told, and the
benchmark ends.

Both times are of the processor. Growth is per doubling, over any three doublings in a row.
"""

from __future__ import annotations

import gc
import multiprocessing
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import everview as ev
from benchmarks.harness import Result
from benchmarks.large_shapes import SHAPES, Rows, Shape

Taken = dict[tuple[str, int], list[tuple[float, float]]]
"""Commit and size → our seconds and SQLite's, one pair for each repeat."""

Row = tuple[Any, ...]

COMMITS = ("first", "second", "deletion", "migration")
_WINDOW = 3
"""Over so many doublings growth is measured."""


def run(*, quick: bool) -> Result:
    """Measure commits of 1,000 to 64,000 rows; quick: of 500 and 1,000."""
    sizes = (500, 1_000) if quick else tuple(1_000 * 2**power for power in range(7))
    repeats, limit = (1, 5.0) if quick else (5, 30.0)
    figures = {"worst_growth": 0.0, "worst_ratio": 0.0}
    table: list[tuple[str, str]] = []
    for name in SHAPES:
        taken, stopped = measure(name, sizes, repeats, limit)
        growth, ratio = max(_growths(taken, sizes)), max(_ratios(taken, sizes))
        figures |= {f"{name}_growth": growth, f"{name}_ratio": ratio}
        table += _lines(name, taken, sizes)
        if stopped:
            table.append((f"{name}, {stopped}", f"stopped after {limit:g} s"))
    figures["worst_growth"] = max(figures[f"{name}_growth"] for name in SHAPES)
    figures["worst_ratio"] = max(figures[f"{name}_ratio"] for name in SHAPES)
    table = [*((name, f"{value:,.2f}") for name, value in figures.items()), *table]
    return Result("large_commits", {"sizes": sizes, "repeats": repeats, "limit_s": limit}, figures, table)


def measure(name: str, sizes: Sequence[int], repeats: int, limit: float) -> tuple[Taken, str]:
    """Return what the commits of a shape took, and where it was stopped, if it was."""
    taken: Taken = defaultdict(list)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(there, name, tuple(sizes), repeats))
    process.start()
    there.close()
    begun = COMMITS[0], sizes[0]
    try:
        while here.poll(limit + 10):  # SQLite, and making the rows, take their time too
            begun, pair = here.recv()
            if pair is not None:
                taken[begun].append(pair)
                if pair[0] > limit:
                    return taken, f"{begun[0]} of {begun[1]:,} rows"
        taken[begun].append((limit, 0.0))
    except EOFError:
        process.join()
        if process.exitcode:
            raise AssertionError(f"{name} failed, see above") from None
        return taken, ""
    finally:
        process.kill()
        process.join()
    return taken, f"{begun[0]} of {begun[1]:,} rows"


def _measure(results: Connection, name: str, sizes: Sequence[int], repeats: int) -> None:
    """Send the name and size of each commit when it begins, and what it took when it is done."""
    shape = SHAPES[name]
    for size in sizes:
        for _ in range(repeats):
            for commit, measured in _commits(shape, size):
                results.send(((commit, size), None))
                ours, views, left = measured()
                theirs, answers = _sqlite(shape, left)
                if views != answers:
                    raise AssertionError(f"{name}: a view differs after the {commit} of {size} rows")
                results.send(((commit, size), (ours, theirs)))
    results.close()


Measured = Callable[[], tuple[float, dict[str, list[Row]], Rows]]
"""Runs a commit; returns its seconds, the views, and the rows that there are."""


def _commits(shape: Shape, size: int) -> Iterator[tuple[str, Measured]]:
    program = ev.Program.parse(shape.program)
    first, second = shape.rows(size, 0), shape.rows(size, 1)
    both = {table: [*first.get(table, ()), *second.get(table, ())] for table in {**first, **second}}
    left = {"first": first, "second": both, "deletion": second}
    with ev.Site.open(":memory:", program) as site:
        written = {"first": (site.insert, first), "second": (site.insert, second)}
        written["deletion"] = site.delete, first

        def measured(commit: str) -> tuple[float, dict[str, list[Row]], Rows]:
            seconds = _timed(lambda: _write(site, *written[commit]))
            return seconds, {view: site.rows(view) for view in shape.views}, left[commit]

        for commit in left:
            yield commit, partial(measured, commit)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with ev.Site.open(path, ev.Program.parse(shape.tables)) as site:
            _write(site, site.insert, first)

        def migrated() -> tuple[float, dict[str, list[Row]], Rows]:
            seconds = _timed(lambda: ev.Site.migrate(path, program))
            with ev.Site.open(path) as site:
                return seconds, {view: site.rows(view) for view in shape.views}, first

        yield "migration", migrated


def _write(site: ev.Site, verb: Callable[[str, Sequence[Any]], int], rows: Rows) -> None:
    with site.transaction():
        for table, some in rows.items():
            verb(table, some)


def _timed(run: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    run()
    return time.process_time() - start


def _sqlite(shape: Shape, rows: Rows) -> tuple[float, dict[str, list[Row]]]:
    """Load the rows into bare tables in memory and ask; return the seconds, and the sorted answers."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    gc.collect()
    start = time.process_time()
    connection.executescript(shape.tables)
    connection.execute("BEGIN")
    for table, some in rows.items():
        marks = ", ".join("?" * len(some[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", some)
    for index in shape.indexes:
        connection.execute(index)
    connection.execute("COMMIT")
    answers = {view: connection.execute(query).fetchall() for view, query in shape.views.items()}
    taken = time.process_time() - start
    connection.close()
    return taken, {view: sorted(answer) for view, answer in answers.items()}


def _median(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(ours for ours, _ in pairs)


def _growths(taken: Taken, sizes: Sequence[int]) -> list[float]:
    """The growth per doubling of each commit over each window of sizes."""
    found = []
    for commit in COMMITS:
        times = [_median(taken[commit, size]) for size in sizes if (commit, size) in taken]
        window = min(_WINDOW, len(times) - 1)
        if window > 0:
            pairs = zip(times, times[window:], strict=False)
            found += [(after / before) ** (1 / window) for before, after in pairs]
    return found or [float("inf")]


def _ratios(taken: Taken, sizes: Sequence[int]) -> list[float]:
    """Our time over SQLite's for each commit of the largest size; if it was not reached, at least so much."""
    found = []
    for commit in COMMITS:
        reached = [size for size in sizes if any(theirs for _, theirs in taken.get((commit, size), ()))]
        if not reached:
            continue
        last = reached[-1]
        theirs = statistics.median(theirs for _, theirs in taken[commit, last] if theirs)
        largest = max((size for size in sizes if (commit, size) in taken), default=last)
        found.append(_median(taken[commit, largest]) / (theirs * largest / last))
    return found or [float("inf")]


def _lines(name: str, taken: Taken, sizes: Sequence[int]) -> list[tuple[str, str]]:
    found = []
    for commit in COMMITS:
        for size in (sizes[0], sizes[-1]):
            pairs = [pair for pair in taken.get((commit, size), ()) if pair[1]]
            if pairs:
                ours, theirs = (statistics.median(side) * 1e3 for side in zip(*pairs, strict=True))
                found.append((f"{name}, {commit}, {size:,} rows", f"{ours:,.1f} ms, SQLite {theirs:,.1f}"))
    return found
