"""Recursive views on a hub: the seconds that executors take for each semi-naive round.

The edges have arrived, and one refresh computes the view, stores it, and commits; that is divided by the
rounds of a semi-naive evaluation, the last of which finds nothing. Then single edges go and come, each a
refresh.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

import everview as ev

Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Task:
    """A query over `edge (a, b)`, how many rows it has, and after how many rounds."""

    query: str
    edges: Edges
    rows: int
    rounds: int


@dataclass(slots=True)
class Measured:
    """Figures, and the rows of the table for people."""

    figures: dict[str, float] = field(default_factory=dict)
    rows: list[tuple[str, str]] = field(default_factory=list)


def measure(spark: SparkSession, tasks: dict[str, Task], *, repeats: int, changes: int) -> Measured:
    """Measure tasks, each under its name; so many edges go and come again, each alone."""
    found = Measured()
    for name, task in tasks.items():
        program = ev.Program.parse(
            "CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL);"
            f"CREATE MATERIALIZED VIEW v AS {task.query};"
        )
        ours: list[float] = []
        taken_by: dict[str, float] = {}
        with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
            _filled(spark, Path(folder) / "warm", program, task.edges[: len(task.edges) // 10])[0].close()
            for turn in range(repeats):
                hub, taken = _filled(spark, Path(folder) / str(turn), program, task.edges)
                with hub:
                    ours.append(taken)
                    if (count := hub.table("v").count()) != task.rows:
                        raise AssertionError(f"the hub has {count} rows of {name}, there are {task.rows}")
                    if turn == repeats - 1:
                        taken_by = _changes(hub, task.edges, changes)
        seconds = statistics.median(ours)
        found.figures |= {
            f"{name}_spark_seconds_per_iteration": seconds / task.rounds,
            f"{name}_spark_insert_seconds": taken_by["insert"],
            f"{name}_spark_delete_seconds": taken_by["delete"],
        }
        found.rows += [
            (f"{name} on a hub: {task.rows:,} rows, {task.rounds} rounds", f"{seconds:.2f} s"),
            (f"{name} on a hub, each round", f"{seconds / task.rounds:.3f} s"),
            (
                f"{name} on a hub: an edge comes / goes",
                f"{taken_by['insert']:.2f} / {taken_by['delete']:.2f} s",
            ),
        ]
    return found


def closure_rounds(edges: Edges) -> int:
    """How many rounds a closure takes: as many as the longest of all shortest paths has edges, and one."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        after[a].append(b)
    longest = 0
    for start in list(after):
        seen, frontier, length = set(after[start]), after[start], 1
        while frontier:
            longest = max(longest, length)
            reached = dict.fromkeys(b for a in frontier for b in after.get(a, ()) if b not in seen)
            seen |= reached.keys()
            frontier, length = list(reached), length + 1
    return longest + 1


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _filled(spark: SparkSession, path: Path, program: ev.Program, edges: Edges) -> tuple[ev.Hub, float]:
    """A hub with the edges, and the seconds of the refresh that took them in, all of it the executors'."""
    hub = ev.Hub.open(path, program, spark=spark)
    store = hub._store  # noqa: SLF001  (how much the driver takes is no choice of users)
    usual, store.driver_rows = store.driver_rows, 0
    hub.insert("edge", edges)
    taken = _timed(hub.refresh)
    store.driver_rows = usual
    return hub, taken


def _changes(hub: ev.Hub, edges: Edges, count: int) -> dict[str, float]:
    """The median seconds of a refresh by a single edge."""
    taken: dict[str, list[float]] = {"delete": [], "insert": []}
    for edge in edges[:: max(1, len(edges) // count)][:count]:
        hub.delete("edge", [edge])
        taken["delete"].append(_timed(hub.refresh))
        hub.insert("edge", [edge])
        taken["insert"].append(_timed(hub.refresh))
    return {kind: statistics.median(seconds) for kind, seconds in taken.items()}
