"""Single-row commits with three views over a large table, against hand-written triggers.

Four stores take turns: a site and bare tables with triggers, each over a tenth and the whole of the rows.
Each turn is some inserts, each a commit, and as many deletes of random rows, each a commit; every store
gets the same ones. Once with durable commits (WAL, synchronous=FULL: what was acknowledged survives a
power loss), once in memory. The tables are filled in batches, not vacuumed and not indexed afterwards: a
freshly packed file is slower, for both, until its pages have split.
"""

from __future__ import annotations

import gc
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import everview as ev
from benchmarks.harness import Result
from benchmarks.triggers import Row, Triggers

_PROGRAM = """
CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL, c BIGINT NOT NULL, d BIGINT NOT NULL,
                e BIGINT NOT NULL);
CREATE TABLE s (k BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE MATERIALIZED VIEW projection AS SELECT b, c FROM r;
CREATE MATERIALIZED VIEW joined AS SELECT r.a, r.b, s.k FROM r JOIN s ON r.c = s.c;
CREATE MATERIALIZED VIEW grouped AS
  SELECT b, count(*) AS n, sum(d) AS total, max(e) AS most FROM r GROUP BY b;
"""
_ROWS_OF_S = 1000
_ROWS_PER_GROUP = 100
_BATCH = 100_000
_VIEWS = ("projection", "joined", "grouped")
_KINDS = ("insert", "delete")
_WARM_UP = 1
"""Turns that are not measured."""


@dataclass(slots=True)
class _Contender:
    """A store and the seconds of its commits, turn by turn."""

    insert: Callable[[Row], int]
    delete: Callable[[Row], int]
    rows: Callable[[str], list[Row]]
    taken: dict[str, list[list[float]]] = field(default_factory=lambda: {kind: [] for kind in _KINDS})

    def quantile(self, kind: str, permille: int) -> float:
        """Return a quantile of all measured commits of a kind, in microseconds."""
        return _quantile([t for turn in self.taken[kind][_WARM_UP:] for t in turn], permille) * 1e6

    def over(self, other: _Contender, kind: str) -> float:
        """Return the median over turns of this one's median divided by the other's."""
        turns = zip(self.taken[kind][_WARM_UP:], other.taken[kind][_WARM_UP:], strict=True)
        return statistics.median(statistics.median(a) / statistics.median(b) for a, b in turns)


def run(*, quick: bool) -> Result:
    """Measure over 100k and 1M rows; quick: 1k and 10k."""
    large, turns, commits = (10_000, 3, 20) if quick else (1_000_000, 11, 200)
    sizes = {"small": large // 10, "large": large}
    figures: dict[str, float] = {}
    table: list[tuple[str, str]] = []
    for mode in ("memory", "durable"):
        with _contenders(mode, sizes) as found:
            _take_turns(found, sizes, turns, commits)
            _check(found)
            for kind in _KINDS:
                site, triggers = found["site", "large"], found["triggers", "large"]
                figures[f"{mode}_{kind}_p50_us"] = site.quantile(kind, 500)
                figures[f"{mode}_{kind}_p99_us"] = site.quantile(kind, 990)
                figures[f"{mode}_{kind}_trigger_ratio"] = site.over(triggers, kind)
                figures[f"{mode}_{kind}_growth"] = site.over(found["site", "small"], kind)
                for (who, size), one in found.items():
                    shown = f"p50 {one.quantile(kind, 500):,.0f} µs, p99 {one.quantile(kind, 990):,.0f} µs"
                    table.append((f"{mode} {kind}, {who}, {sizes[size]:,} rows", shown))
                grown = triggers.over(found["triggers", "small"], kind)
                table.append((f"{mode} {kind}, triggers' own growth", f"{grown:.2f}"))
    headline = {
        "p50_us": max(figures[f"durable_{kind}_p50_us"] for kind in _KINDS),
        "p99_us": max(figures[f"durable_{kind}_p99_us"] for kind in _KINDS),
        "trigger_ratio": max(value for name, value in figures.items() if name.endswith("_trigger_ratio")),
        "growth_100k_to_1m": max(value for name, value in figures.items() if name.endswith("_growth")),
    }
    figures = {**headline, **figures}
    table = [*((name, f"{value:,.2f}") for name, value in figures.items()), *table]
    parameters = {"rows": large, "turns": turns - _WARM_UP, "commits": commits, "synchronous": "FULL"}
    return Result("small_commits", parameters, figures, table)


@contextmanager
def _contenders(mode: str, sizes: dict[str, int]) -> Iterator[dict[tuple[str, str], _Contender]]:
    """Open and fill the stores."""
    found: dict[tuple[str, str], _Contender] = {}
    with tempfile.TemporaryDirectory() as folder:
        opened: list[ev.Site | Triggers] = []
        for size, count in sizes.items():
            paths = [
                ":memory:" if mode == "memory" else str(Path(folder) / f"{who}-{size}.db")
                for who in ("site", "triggers")
            ]
            site, triggers = ev.Site.open(paths[0], ev.Program.parse(_PROGRAM)), Triggers(paths[1])
            opened += [site, triggers]
            partners = [(k, k) for k in range(_ROWS_OF_S)]
            site.insert("s", partners)
            triggers.load("s", partners)
            rows = _rows(count)
            for start in range(0, count, _BATCH):
                site.insert("r", rows[start : start + _BATCH])
                triggers.load("r", rows[start : start + _BATCH])
            found["site", size] = _of_site(site)
            found["triggers", size] = _Contender(triggers.insert, triggers.delete, triggers.rows)
        yield found
        for store in opened:
            store.close()


def _of_site(site: ev.Site) -> _Contender:
    return _Contender(lambda row: site.insert("r", [row]), lambda row: site.delete("r", [row]), site.rows)


def _rows(count: int) -> list[Row]:
    rng = random.Random(count)
    groups = count // _ROWS_PER_GROUP
    return [
        (a, rng.randrange(groups), rng.randrange(_ROWS_OF_S), rng.randrange(10**6), rng.randrange(10**6))
        for a in rng.sample(range(count * 2), count)
    ]


def _take_turns(
    found: dict[tuple[str, str], _Contender], sizes: dict[str, int], turns: int, commits: int
) -> None:
    new = {size: _new_rows(count, turns * commits) for size, count in sizes.items()}
    old = {size: random.Random(1).sample(_rows(count), turns * commits) for size, count in sizes.items()}
    for turn in range(turns):
        part = slice(turn * commits, (turn + 1) * commits)
        # Whoever comes first finds the processor's caches as the last turn left them: so they rotate.
        order = list(found.items())
        shift = turn % len(order)
        for (_, size), one in order[shift:] + order[:shift]:
            gc.collect()
            one.taken["insert"].append([_timed(one.insert, row) for row in new[size][part]])
            one.taken["delete"].append([_timed(one.delete, row) for row in old[size][part]])


def _new_rows(count: int, wanted: int) -> list[Row]:
    """Rows all over the range of the table's keys, none of which is there, but for a most unlikely chance."""
    rng = random.Random(2)
    return [
        (
            a,
            rng.randrange(count // _ROWS_PER_GROUP),
            rng.randrange(_ROWS_OF_S),
            rng.randrange(10**6),
            rng.randrange(10**6),
        )
        for a in rng.sample(range(count * 2), wanted)
    ]


def _timed(write: Callable[[Row], int], row: Row) -> float:
    start = time.perf_counter()
    count = write(row)
    taken = time.perf_counter() - start
    if count != 1:
        raise AssertionError(f"the commit of {row} changed {count} rows")
    return taken


def _check(found: dict[tuple[str, str], _Contender]) -> None:
    """Raise if a site's views differ from what the triggers have made of the same commits."""
    for size in ("small", "large"):
        for view in _VIEWS:
            if found["site", size].rows(view) != found["triggers", size].rows(view):
                raise AssertionError(f"the views {view} over the {size} table differ")


def _quantile(values: list[float], permille: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * permille // 1000)]
