"""A hub's refresh against plain Spark that merges the same delta and writes base and views anew.

Orders (10 million) and customers (a million), three views: a projection with counts, a join, a group-by with
sum and max. Deltas of 1,000 to a million orders, half of them deletes, scattered over all keys. After warming
up, refreshes follow one another on the state that each leaves behind, with all their commits and merging.
Plain Spark has the same session, as many shuffle partitions as cores, and runs in between, with adaptive
execution on and off; the better median counts. In the end every view equals what Spark computes from the
hub's own orders.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import everview as ev
from benchmarks.harness import Result
from benchmarks.hub_data import PROGRAM, Deltas, PlainSpark, Sizes, base, customers, session

_SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000}


def run(*, quick: bool) -> Result:
    """Measure with 10M orders; quick: 2k, deltas of a tenth of that at most, each size once."""
    orders, warm, timed, plainly = (2_000, 0, 1, 1) if quick else (10_000_000, 10, 20, 3)
    deltas = {name: min(rows, orders // 10) for name, rows in _SIZES.items()}
    spark = session(quick=quick)
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        bench = _Bench(spark, Path(folder), orders)
        small = _Bench(spark, Path(folder) / "small", max(orders // 10, 1))
        growth = _growth(small, bench, deltas["1k"], warm, timed)
        figures, rows = bench.measure(deltas, warm, timed, plainly)
        figures["growth_1m_to_10m"] = growth
        rows.append(("1k refresh, 10 times the base", f"{growth:.2f} times the time"))
        aged = _growth(small, bench, deltas["1k"], 0, timed)
        figures["growth_after_all"] = aged
        rows.append(("the same after all of it", f"{aged:.2f} times the time"))
        if not quick:  # for then the whole machine forgets its files, whoever else is at work
            figures["cold_1k_seconds"] = bench.cold(deltas["1k"])
            rows.append(("1k refresh, cold file cache", f"{figures['cold_1k_seconds']:.2f} s"))
        bench.check()
        rows.append(("views", "equal a recompute"))
    return Result("hub_refresh", {"orders": orders, "timed": timed, "warm": warm}, figures, rows)


@dataclass(frozen=True, slots=True)
class _Measured:
    """Seconds of a refresh, ours and plain Spark's; what one adds to the store, and takes of Spark."""

    p50: float
    p95: float
    plain: float
    grown_mb: float
    jobs: int


class _Bench:
    """A hub with its orders, and plain Spark with the same."""

    def __init__(self, spark: SparkSession, folder: Path, orders: int) -> None:
        folder.mkdir(exist_ok=True)
        self.spark = spark
        self.sizes = Sizes(orders, max(orders // 10, 1), min(10_000, max(orders // 100, 1)))
        self.folder = folder
        self.hub = ev.Hub.open(folder / "hub", PROGRAM, spark=spark)
        self.hub.insert("orders", base(spark, self.sizes))
        self.hub.insert("customers", customers(spark, self.sizes))
        start = time.perf_counter()
        self.hub.refresh()
        self.filled_seconds = time.perf_counter() - start
        self.deltas = Deltas(spark, folder, self.sizes)
        self.jobs = 0

    def refresh(self, rows: int) -> float:
        """Seconds of one refresh by a delta that lies in the inbox."""
        self.give(rows)
        start = time.perf_counter()
        report = self.hub.refresh()
        self.jobs = report.jobs
        return time.perf_counter() - start

    def give(self, rows: int) -> None:
        """Put a delta into the inbox."""
        self.delta = self.deltas.next(rows)
        self.hub.insert("orders", self.spark.read.parquet(self.delta.inserted))
        self.hub.delete("orders", self.spark.read.parquet(self.delta.deleted))

    def measure(
        self, deltas: dict[str, int], warm: int, timed: int, plainly: int
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        """Ours and plain Spark's, size by size."""
        plain = PlainSpark(self.spark, self.folder, self.sizes)
        figures: dict[str, float] = {}
        rows = [("first fill", f"{self.filled_seconds:.1f} s")]
        measured: dict[int, _Measured] = {}
        for name, size in deltas.items():
            if size not in measured:  # quick ones are all the same
                measured[size] = self._measure(plain, size, warm, timed, plainly)
            found = measured[size]
            p50, p95, best = found.p50, found.p95, found.plain
            figures[f"speedup_{name}"] = best / p50
            figures[f"p50_{name}_seconds"], figures[f"p95_{name}_seconds"] = p50, p95
            times = f"p50 {p50:.2f} s, p95 {p95:.2f} s, plain {best:.1f} s: {best / p50:.1f} times"
            rows.append(
                (f"{name} delta", f"{times}; {found.grown_mb:.1f} MB and {found.jobs} jobs a refresh")
            )
            if name == "1k":
                figures["jobs_1k"] = found.jobs
                figures["p95_over_p50_1k"] = p95 / p50
        return figures, rows

    def _measure(self, plain: PlainSpark, size: int, warm: int, timed: int, plainly: int) -> _Measured:
        """Ours and plain Spark's, in turns, by deltas of one size."""
        for _ in range(warm):
            self.refresh(size)
        ours: list[float] = []
        theirs: dict[str, list[float]] = {"true": [], "false": []}
        written = self._bytes()
        for number in range(timed):
            ours.append(self.refresh(size))
            step = max(1, timed // (2 * plainly))
            if number % step == 0 and number < 2 * plainly * step:
                adaptive = "true" if len(theirs["true"]) <= len(theirs["false"]) else "false"
                self.spark.conf.set("spark.sql.adaptive.enabled", adaptive)
                theirs[adaptive].append(_timed(lambda: plain.refresh(self.delta)))
        return _Measured(
            p50=statistics.median(ours),
            p95=sorted(ours)[max(0, round(0.95 * len(ours)) - 1)],
            plain=min(statistics.median(times) for times in theirs.values() if times),
            grown_mb=(self._bytes() - written) / timed / 1e6,
            jobs=self.jobs,
        )

    def _bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.folder / "hub").rglob("*") if file.is_file())

    def cold(self, rows: int) -> float:
        """One refresh after the system has forgotten the files; 0 where we may not tell it to."""
        self.give(rows)
        try:
            Path("/proc/sys/vm/drop_caches").write_text("1")
        except OSError:
            return 0.0
        return _timed(self.hub.refresh)

    def check(self) -> None:
        """Every view equals what Spark computes from the hub's orders."""
        orders, people = self.hub.table("orders"), self.hub.table("customers")
        orders.createOrReplaceTempView("checked_orders")
        spark = orders.sparkSession
        expected = {
            "buyers": orders.select("customer"),
            "bought": orders.join(people, "customer").select("id", "amount", "city"),
            "turnover": spark.sql(
                "SELECT shop, sum(amount) AS total, max(amount) AS most FROM checked_orders GROUP BY shop"
            ),
        }
        for view, wanted in expected.items():
            _check_equal(view, self.hub.table(view), wanted)


def _check_equal(view: str, got: DataFrame, wanted: DataFrame) -> None:
    counts = got.groupBy(*got.columns).count(), wanted.groupBy(*wanted.columns).count()
    if counts[0].exceptAll(counts[1]).count() or counts[1].exceptAll(counts[0]).count():
        raise AssertionError(f"{view} differs from a recompute")


def _growth(small: _Bench, large: _Bench, rows: int, warm: int, timed: int) -> float:
    """The median time on the large base by that on the small one, taken in turns."""
    for _ in range(warm):
        small.refresh(rows)
        large.refresh(rows)
    pairs = [(small.refresh(rows), large.refresh(rows)) for _ in range(timed)]
    return statistics.median(b for _, b in pairs) / statistics.median(a for a, _ in pairs)


def _timed(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
