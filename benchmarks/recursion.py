"""Recursive views: first evaluation against DuckDB's recursive CTE, single changes against recomputing.

(a) Transitive closure of a random sparse graph, and same-generation on a binary tree. The edges come in one
insertion, and the view is there when it returns; DuckDB makes a table of the same query. Both are in memory,
in turn.

(b) What a few roots reach in graphs of 10,000 to 300,000 edges, two for each node. Single edges are deleted
and inserted, each a durable commit; in between SQLite itself computes the view again, by its own recursive
CTE, into a table of a file of its own, durably too. The smallest graph is measured in memory besides: there a
durable commit spends nearly all of its time on the disk.

(c) What a link change makes sites send where rules live at places: see `located_bytes`.

On a hub (`recursion_spark`): the views of (a) by executors, seconds for each round.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

import everview as ev
from benchmarks import located_bytes
from benchmarks.harness import Result, interleaved
from benchmarks.hub_data import session
from benchmarks.recursion_spark import Task, closure_rounds, measure

Edges = list[tuple[int, int]]

_EDGE = "CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL)"
_CLOSURE = """WITH RECURSIVE t(x, y) AS (
    SELECT a, b FROM edge UNION SELECT t.x, e.b FROM t JOIN edge e ON t.y = e.a) SELECT x, y FROM t"""
_GENERATION = """WITH RECURSIVE s(x, y) AS (
    SELECT e.b, f.b FROM edge e JOIN edge f ON e.a = f.a
    UNION SELECT e.b, f.b FROM s JOIN edge e ON s.x = e.a JOIN edge f ON s.y = f.a) SELECT x, y FROM s"""
_REACHED = """WITH RECURSIVE t(x, y) AS (
    SELECT r, r FROM root UNION SELECT t.x, e.b FROM t JOIN edge e ON t.y = e.a) SELECT x, y FROM t"""
_ROOTS = 10


def run(*, quick: bool) -> Result:
    """Measure; quick: once, 50 nodes, a tree of 4 levels, graphs of 500 and 1,000 edges."""
    repeats = 1 if quick else 5
    nodes, depth = (50, 4) if quick else (2_000, 10)
    sizes = (500, 1_000) if quick else (10_000, 100_000, 300_000)
    changes = 10 if quick else 200
    figures: dict[str, float] = {}
    rows: list[tuple[str, str]] = []
    queries = {
        "closure": (_CLOSURE, _graph(nodes, 2 * nodes)),
        "generation": (_GENERATION, [(node // 2, node) for node in range(2, 2**depth)]),
    }
    tasks: dict[str, Task] = {}
    for name, (query, edges) in queries.items():
        taken, count = _first(query, edges, repeats)
        # Two nodes of a tree whose paths meet at its root are found last; one round more finds nothing.
        rounds = closure_rounds(edges) if name == "closure" else depth
        tasks[name] = Task(query, edges, count, rounds)
        figures[f"{name}_sqlite_seconds"] = taken["ours"]
        figures[f"{name}_sqlite_ratio" if name != "closure" else "transitive_sqlite_ratio"] = (
            taken["ours"] / taken["duckdb"]
        )
        rows += [
            (f"{name}: {len(edges):,} edges, {count:,} rows", f"{taken['ours']:.2f} s"),
            (f"{name}: DuckDB", f"{taken['duckdb']:.2f} s"),
        ]
    speedups: list[float] = []
    for size, where in [*((size, "durable") for size in sizes), (sizes[0], "memory")]:
        found = _updates(_graph(size // 2, size), changes, repeats, in_memory=where == "memory")
        speedups += found.speedups if where == "durable" else []
        speedup = figures[f"{where}_update_speedup_{size}"] = statistics.median(found.speedups)
        what = f"{size:,} edges, {where}"
        rows += [
            (f"{what}: recomputing {found.count:,} rows", f"{found.again * 1e3:,.1f} ms"),
            *((f"{what}: {kind}, p50 / p99", shown) for kind, shown in found.shown()),
            (f"{what}: speed-up, median", f"{speedup:,.0f}"),
        ]
    on_spark = measure(session(quick=quick), tasks, repeats=repeats, changes=1 if quick else 5)
    rows += on_spark.rows
    headline = {
        "update_speedup_median": statistics.median(speedups),
        "closure_sqlite_ratio": max(figures["transitive_sqlite_ratio"], figures["generation_sqlite_ratio"]),
        "closure_spark_seconds_per_iteration": on_spark.figures["closure_spark_seconds_per_iteration"],
    }
    located, shown = located_bytes.figures(quick=quick)
    headline["located_bytes_ratio"] = located["located_bytes_ratio"]
    figures |= located
    rows = [*((name, f"{value:,.4g}") for name, value in headline.items()), *rows, *shown]
    parameters = {"nodes": nodes, "depth": depth, "sizes": list(sizes), "roots": _ROOTS, "changes": changes}
    return Result("recursion", parameters, {**headline, **figures, **on_spark.figures}, rows)


def _graph(nodes: int, edges: int) -> Edges:
    rng = random.Random(edges)
    found: set[tuple[int, int]] = set()
    while len(found) < edges:
        found.add((rng.randrange(nodes), rng.randrange(nodes)))
    return sorted(found)


def _first(query: str, edges: Edges, repeats: int) -> tuple[dict[str, float], int]:
    """Return the median seconds of both, and how many rows there are; they must be the same."""
    program = ev.Program.parse(f"{_EDGE}; CREATE MATERIALIZED VIEW v AS {query};")
    counts: set[int] = set()

    def ours() -> None:
        with ev.Site.open(":memory:", program) as site:
            start = time.perf_counter()
            site.insert("edge", edges)
            times["ours"].append(time.perf_counter() - start)
            counts.add(site.query("SELECT count(*) AS n FROM v")[0]["n"])

    def others() -> None:
        with duckdb.connect() as connection:
            connection.execute(_EDGE)
            connection.executemany("INSERT INTO edge VALUES (?, ?)", edges)
            start = time.perf_counter()
            connection.execute(f"CREATE TABLE v AS {query}")
            times["duckdb"].append(time.perf_counter() - start)
            found = connection.execute("SELECT count(*) FROM v").fetchone()
            counts.add(found[0] if found else -1)

    times: dict[str, list[float]] = {"ours": [], "duckdb": []}
    interleaved({"ours": ours, "duckdb": others}, repeats=repeats)
    if len(counts) != 1:
        raise AssertionError(f"the two differ: {counts} rows")
    return {name: statistics.median(taken) for name, taken in times.items()}, counts.pop()


class _Updates:
    """What was measured over one graph."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {"delete": [], "insert": []}
        self.agains: list[float] = []
        self.count = 0

    @property
    def again(self) -> float:
        """Return the median seconds of computing all of it."""
        return statistics.median(self.agains)

    @property
    def speedups(self) -> list[float]:
        """Return, for each change, how much longer computing all of it takes."""
        return [self.again / taken for kind in self.taken.values() for taken in kind]

    def shown(self) -> list[tuple[str, str]]:
        """Return the milliseconds of each kind of change."""
        return [(kind, f"{_ms(taken, 0.5)} / {_ms(taken, 0.99)} ms") for kind, taken in self.taken.items()]


def _ms(taken: Sequence[float], share: float) -> str:
    return f"{sorted(taken)[int(share * (len(taken) - 1))] * 1e3:,.2f}"


def _updates(edges: Edges, changes: int, repeats: int, *, in_memory: bool) -> _Updates:
    program = ev.Program.parse(
        f"{_EDGE}; CREATE TABLE root (r BIGINT NOT NULL); CREATE MATERIALIZED VIEW v AS {_REACHED};"
    )
    rng = random.Random(1)
    roots = [(rng.choice(edges)[0],) for _ in range(_ROOTS)]
    found = _Updates()
    with tempfile.TemporaryDirectory() as folder:
        files = [":memory:" if in_memory else str(Path(folder) / name) for name in ("site.db", "plain.db")]
        site = ev.Site.open(files[0], program)
        site.insert("root", roots)
        site.insert("edge", edges)
        plain = _Plain(files[1], edges, roots)
        for turn in range(repeats):
            for edge in rng.sample(edges, changes // repeats):
                for kind in ("delete", "insert"):
                    start = time.perf_counter()
                    site.delete("edge", [edge]) if kind == "delete" else site.insert("edge", [edge])
                    found.taken[kind].append(time.perf_counter() - start)
            found.agains.append(plain.compute_again())
            if turn in (0, repeats - 1) and site.rows("v") != plain.rows():
                raise AssertionError("the view is not what SQLite computes")
        found.count = len(plain.rows())
        plain.close()
        site.close()
    return found


class _Plain:
    """The same query in bare SQLite, its result in a table."""

    def __init__(self, path: str, edges: Edges, roots: Sequence[tuple[int]]) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA cache_size = -65536",
            "CREATE TABLE edge (a INTEGER NOT NULL, b INTEGER NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID",
            "CREATE TABLE root (r INTEGER PRIMARY KEY)",
            "CREATE TABLE v (x INTEGER NOT NULL, y INTEGER NOT NULL, PRIMARY KEY (x, y)) WITHOUT ROWID",
            "BEGIN",
        ):
            self._connection.execute(statement)
        self._connection.executemany("INSERT INTO edge VALUES (?, ?)", edges)
        self._connection.executemany("INSERT OR IGNORE INTO root VALUES (?)", roots)
        self._connection.execute("COMMIT")

    def compute_again(self) -> float:
        """Empty the table and fill it; return the seconds."""
        start = time.perf_counter()
        self._connection.execute("BEGIN")
        self._connection.execute("DELETE FROM v")
        self._connection.execute(f"INSERT INTO v {_REACHED}")
        self._connection.execute("COMMIT")
        return time.perf_counter() - start

    def rows(self) -> list[tuple[int, int]]:
        return self._connection.execute("SELECT x, y FROM v ORDER BY 1, 2").fetchall()

    def close(self) -> None:
        self._connection.close()
