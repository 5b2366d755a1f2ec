"""Rows that stream into a hub, against plain Spark that removes duplicates from the same files.

Orders, one in ten of them twice, are keyed by all their columns, their ids are computed, and one view groups
them. They go into an empty store, and into one that has as many orders already. Plain Spark takes the
greatest version of each row, `groupBy(all columns).agg(max)`, and writes the result; it keeps no view and
nothing to begin from next time.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import everview as ev
from benchmarks.harness import Result
from benchmarks.hub_data import Sizes, orders, session

PROGRAM = ev.Program.parse(
    """
CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, shop BIGINT NOT NULL,
                     amount BIGINT NOT NULL);
CREATE MATERIALIZED VIEW turnover AS
  SELECT shop, count(*) AS n, sum(amount) AS total FROM orders GROUP BY shop;
"""
)
_COLUMNS = ("id", "customer", "shop", "amount")


def run(*, quick: bool) -> Result:
    """Measure with 10M rows; quick: 2k."""
    rows = 2_000 if quick else 10_000_000
    spark = session(quick=quick)
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        bench = _Bench(spark, Path(folder), rows)
        bench.warm_up()
        empty, plain_empty = bench.fill(0)
        full, plain_full = bench.fill(1)
        bench.check()
    speeds = {"empty": rows / empty, "of as many": rows / full}
    ratios = {"empty": plain_empty / empty, "of as many": plain_full / full}
    table = [
        (f"into a store {name}", f"{speeds[name]:,.0f} rows a second, {ratios[name]:.2f} times plain Spark's")
        for name in speeds
    ]
    figures = {
        "rows_per_second": min(speeds.values()),
        "plain_spark_speed_ratio": min(ratios.values()),
        "empty_seconds": empty,
        "full_seconds": full,
        "plain_seconds": min(plain_empty, plain_full),
    }
    return Result("hub_ingest", {"rows": rows}, figures, table)


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self._spark = spark
        self._folder = folder
        self._rows = rows
        self._distinct = rows - rows // 10
        self._hub = ev.Hub.open(folder / "hub", PROGRAM, spark=spark)

    def _come(self, number: int, rows: int) -> str:
        """Files of rows that come; the last tenth repeats the first."""
        path = str(self._folder / f"come-{number}-{rows}")
        distinct = rows - rows // 10
        numbers = self._spark.range(rows).selectExpr(f"{number * distinct}L + id % {distinct}L AS id")
        orders(numbers, Sizes(self._rows, max(rows // 10, 1), 10_000)).write.parquet(path)
        return path

    def warm_up(self) -> None:
        """A hub of its own and plain Spark, with a tenth of the rows: as many as go the same way."""
        path = self._come(-1, self._rows // 10)
        with ev.Hub.open(self._folder / "warm", PROGRAM, spark=self._spark) as hub:
            hub.insert("orders", self._spark.read.parquet(path))
            hub.refresh()
        self._plain(path)

    def fill(self, number: int) -> tuple[float, float]:
        """Seconds of the hub, and of plain Spark, for the same files."""
        path = self._come(number, self._rows)

        def ours() -> None:
            self._hub.insert("orders", self._spark.read.parquet(path))
            self._hub.refresh()

        theirs = min(_timed(lambda: self._plain(path)) for _ in range(2))
        return _timed(ours), theirs

    def _plain(self, path: str) -> None:
        out = str(self._folder / "plain")
        schema = ", ".join(f"{name} BIGINT" for name in _COLUMNS)
        read = self._spark.read.schema(schema).parquet(path).selectExpr("*", "1L AS version")
        read.groupBy(*_COLUMNS).agg({"version": "max"}).write.mode("overwrite").parquet(out)
        shutil.rmtree(out)

    def check(self) -> None:
        """The view has each row once."""
        got = sum(n for _, n, _ in self._hub.rows("turnover"))
        if got != 2 * self._distinct:
            raise AssertionError(f"the view counts {got} orders, not {2 * self._distinct}")


def _timed(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
