"""How a hub's refresh behaves with more cores, more rows, more refreshes, and with less memory than rows.

- A million orders as a delta, with one core and with two.
- A thousand orders as a delta, on bases of 1, 10 and 30 million.
- 500 refreshes one after the other: the last against the first, and how files and bytes grow.
- The memory of all processes while the largest base is filled and refreshed (what is mapped from files is
  not counted: the system takes it back when it needs to).

Every measurement is a process of its own, with a Spark session of its own; with `--quick` all are in one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

import everview as ev
from benchmarks.harness import Result
from benchmarks.hub_data import PROGRAM, Deltas, Sizes, base, customers, session

DRIVER_MEMORY = "2g"


@dataclass(frozen=True, slots=True)
class _Task:
    """Refreshes by deltas of one size, on a base of one size."""

    cores: int
    orders: int
    delta: int
    warm: int
    timed: int


def run(*, quick: bool) -> Result:
    """Measure with up to 30M orders; quick: up to 30k."""
    scale = 1_000 if quick else 1
    million, thousand = 1_000_000 // scale, max(1_000 // scale, 10)
    repeats, few, often = ((0, 1), (0, 1), (0, 2)) if quick else ((2, 5), (10, 20), (10, 500))
    alone = _Task(1, 4 * million, million, *repeats)
    bases = (1, 30) if quick else (1, 10, 30)
    tasks = [
        _Task(2, 4 * million, million, *repeats),
        _Task(2, million, thousand, *often),
        *(_Task(2, size * million, thousand, *few) for size in bases),
    ]
    # A Java takes longer to start than all of this when there are few rows.
    one, two, many, *sized = _here([alone, *tasks]) if quick else map(_apart, [alone, *tasks])
    figures: dict[str, float] = {}
    rows: list[tuple[str, str]] = []
    figures["cores_speedup"] = one.median / two.median
    text = f"{one.median:.1f} s and {two.median:.1f} s: {figures['cores_speedup']:.2f} times"
    rows.append(("1M delta, 1 core and 2", text))
    for size, found in zip(bases, sized, strict=True):
        rows.append((f"1k delta on {size}M", f"{found.median:.2f} s; filled in {found.filled:.0f} s"))
    figures["rows_growth_1m_to_30m"] = sized[-1].median / sized[0].median
    figures["peak_rss_mb"], stored = sized[-1].peak_mb, sized[-1].stored_mb
    rows.append(("memory with 30M", f"{figures['peak_rss_mb']:.0f} MB; {stored:.0f} MB are stored"))
    part = max(1, len(many.seconds) // 20)
    first, last = (statistics.median(some) for some in (many.seconds[:part], many.seconds[-part:]))
    figures["refresh_500_over_first"] = last / first
    rows.append(("500 refreshes", f"{first:.2f} s at first, {last:.2f} s at last: {last / first:.2f} times"))
    rows.append(("files and bytes after them", f"{many.files} files, {many.stored_mb:.0f} MB"))
    return Result("hub_scaling", {"orders": 30 * million, "delta": million}, figures, rows)


@dataclass(slots=True)
class _Measured:
    seconds: list[float]
    filled: float
    files: int
    stored_mb: float
    peak_mb: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def _apart(task: _Task) -> _Measured:
    """A task in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.hub_scaling", json.dumps(asdict(task))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with _Watch(process.pid) as watch:
        out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return _Measured(**json.loads(out.splitlines()[-1]), peak_mb=watch.peak / 1e6)


def _here(tasks: Sequence[_Task]) -> list[_Measured]:
    """Tasks in this process: Java stays, but the session is another when the cores are."""
    found: list[_Measured] = []
    for cores, some in groupby(tasks, key=lambda task: task.cores):
        if running := SparkSession.getActiveSession():
            running.stop()
        spark = session(quick=True, cores=cores, memory=DRIVER_MEMORY)
        for task in some:
            with _Watch(os.getpid()) as watch:
                done = _work(spark, task)
            found.append(_Measured(**done, peak_mb=watch.peak / 1e6))
    return found


class _Watch(threading.Thread):
    """The greatest memory of a process and all that it started, while the context lasts."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.peak = 0
        self._done = threading.Event()

    def run(self) -> None:
        """Look now and then."""
        while not self._done.wait(0.5):
            self.peak = max(self.peak, _memory(self._process))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._done.set()
        self.join()


def _memory(process: int) -> int:
    """Bytes that are no file's, of a process and its descendants; 0 where the system does not tell."""
    total = 0
    waiting = [process]
    while waiting:
        folder = Path(f"/proc/{waiting.pop()}")
        try:
            for line in (folder / "status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
            for thread in (folder / "task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
        except OSError:
            continue
    return total


def _work(spark: SparkSession, task: _Task) -> dict[str, Any]:
    sizes = Sizes(task.orders, max(task.orders // 10, 1), min(10_000, max(task.orders // 100, 1)))
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as name:
        folder = Path(name)
        deltas = Deltas(spark, folder, sizes)
        # The delta's files are ours, not the hub's work; so is what was retained for reading older refreshes.
        with ev.Hub.open(folder / "hub", PROGRAM, spark=spark, retain_refreshes=2) as hub:
            start = time.perf_counter()
            hub.insert("orders", base(spark, sizes))
            hub.insert("customers", customers(spark, sizes))
            hub.refresh()
            filled = time.perf_counter() - start
            seconds = []
            for _ in range(task.warm + task.timed):
                delta = deltas.next(task.delta)
                hub.insert("orders", spark.read.parquet(delta.inserted))
                hub.delete("orders", spark.read.parquet(delta.deleted))
                start = time.perf_counter()
                hub.refresh()
                seconds.append(time.perf_counter() - start)
            hub.vacuum()
            files = [file for file in (folder / "hub").rglob("*") if file.is_file()]
            stored = sum(file.stat().st_size for file in files) / 1e6
    return {"seconds": seconds[task.warm :], "filled": filled, "files": len(files), "stored_mb": stored}


if __name__ == "__main__":
    asked = _Task(**json.loads(sys.argv[1]))
    spark = session(quick=False, cores=asked.cores, memory=DRIVER_MEMORY)
    print(json.dumps(_work(spark, asked)))
