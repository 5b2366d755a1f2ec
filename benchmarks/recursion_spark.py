"""Recursive views on a hub: seconds for each semi-naive round, by executors, beside a loop of plain Spark's.

Transitive closure of a random sparse graph, and same-generation on a binary tree. The edges have arrived,
and one refresh of a hub computes the view, stores it, and commits; that is divided by the rounds. The plain
loop is semi-naive too: it joins what the last round added with the edges, takes away what is known, and cuts
the lineage in each round by a local checkpoint. Then single edges come and go, each a refresh.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)

import everview as ev

Edges = Sequence[tuple[int, int]]
Step = Callable[[DataFrame, DataFrame | None], DataFrame]
"""From the edges and what the last round added to what may be new; from the edges alone at first."""


@dataclass(slots=True)
class Measured:
    """Figures, and the rows of the table for people."""

    figures: dict[str, float] = field(default_factory=dict)
    rows: list[tuple[str, str]] = field(default_factory=list)


def measure(
    spark: SparkSession, queries: dict[str, tuple[str, Edges]], *, repeats: int, plain_repeats: int
) -> Measured:
    """Measure `closure` and `generation`, each a query over `edge (a, b)`, on a session."""
    found = Measured()
    for name, (query, edges) in queries.items():
        loop = {"closure": _closure, "generation": _generation}[name]
        program = ev.Program.parse(
            f"CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL);CREATE MATERIALIZED VIEW v AS {query};"
        )
        rounds, rows = 0, 0
        plains: list[float] = []
        ours: list[float] = []
        with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
            _filled(spark, Path(folder) / "warm", program, edges[: len(edges) // 10])[0].close()
            changes: dict[str, float] = {}
            for turn in range(repeats):
                hub, taken = _filled(spark, Path(folder) / str(turn), program, edges)
                with hub:
                    ours.append(taken)
                    if turn < plain_repeats:
                        start = time.perf_counter()
                        rounds, rows = _looped(spark, edges, loop)
                        plains.append(time.perf_counter() - start)
                    if (count := hub.table("v").count()) != rows:
                        raise AssertionError(f"the hub has {count} rows, plain Spark {rows}")
                    if turn == repeats - 1:
                        changes = _changes(hub, edges)
            seconds, plain = statistics.median(ours), statistics.median(plains)
        found.figures |= {
            f"{name}_spark_seconds_per_iteration": seconds / rounds,
            f"{name}_spark_plain_seconds_per_iteration": plain / rounds,
            f"{name}_spark_insert_seconds": changes["insert"],
            f"{name}_spark_delete_seconds": changes["delete"],
        }
        found.rows += [
            (f"{name} on a hub: {rows:,} rows, {rounds} rounds", f"{seconds:.2f} s"),
            (f"{name} on a hub, each round", f"{seconds / rounds:.3f} s"),
            (f"{name} by a plain loop on Spark, each round", f"{plain / rounds:.3f} s"),
            (
                f"{name} on a hub: an edge comes / goes",
                f"{changes['insert']:.2f} / {changes['delete']:.2f} s",
            ),
        ]
    return found


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


def _changes(hub: ev.Hub, edges: Edges) -> dict[str, float]:
    """The median seconds of a refresh by a single edge."""
    taken: dict[str, list[float]] = {"delete": [], "insert": []}
    for edge in edges[:: max(1, len(edges) // 5)][:5]:
        hub.delete("edge", [edge])
        taken["delete"].append(_timed(hub.refresh))
        hub.insert("edge", [edge])
        taken["insert"].append(_timed(hub.refresh))
    return {kind: statistics.median(seconds) for kind, seconds in taken.items()}


def _looped(spark: SparkSession, edges: Edges, step: Step) -> tuple[int, int]:
    """How many rounds a loop took, the last of which found nothing, and how many rows it found."""
    edge = spark.createDataFrame(list(edges), "a BIGINT, b BIGINT").localCheckpoint()
    delta = step(edge, None).distinct().localCheckpoint()
    known, rounds = delta, 1
    while True:
        rounds += 1
        delta = step(edge, delta).distinct().join(known, ["x", "y"], "left_anti").localCheckpoint()
        if not delta.count():
            return rounds, known.count()
        known = known.unionAll(delta).localCheckpoint()


def _closure(edge: DataFrame, delta: DataFrame | None) -> DataFrame:
    if delta is None:
        return edge.select(F.col("a").alias("x"), F.col("b").alias("y"))
    return delta.join(edge, delta.y == edge.a).select("x", F.col("b").alias("y"))


def _generation(edge: DataFrame, delta: DataFrame | None) -> DataFrame:
    one = edge.select(F.col("a").alias("p"), F.col("b").alias("c"))
    other = edge.select(F.col("a").alias("q"), F.col("b").alias("d"))
    if delta is None:
        met = one.join(other, one.p == other.q)
    else:
        met = delta.join(one, delta.x == one.p).join(other, delta.y == other.q)
    return met.select(F.col("c").alias("x"), F.col("d").alias("y"))
