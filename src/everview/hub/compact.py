"""Merging runs, so that a lookup reads few of them however many refreshes there were.

Runs are ranked by size, each rank `FANOUT` times the one before. As soon as a rank has as many runs, they
become one of the next rank: a table has fewer than `FANOUT` runs a rank, and a row is written again once a
rank. Runs of few rows are merged by the driver within the refresh that makes them due; larger ones by the
executors, in the background, and the next refresh takes over what has been merged by then.
"""

from __future__ import annotations

import contextvars
import math
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from everview.hub.files import Files
from everview.hub.jobs import entitled, job
from everview.hub.lookup import open_part, ranges
from everview.hub.runs import Layout, Part, Run, merged, packed
from everview.hub.searching import Request, search
from everview.hub.wording import Words

__all__ = ["FANOUT", "PLACES", "PLACE_NAMES", "Compactor", "due", "write_part", "written_run"]

FANOUT = 6
"""How many runs of about one size there may be, less one."""

_SMALL = 1_000
"""Runs of up to so many rows are of the first rank."""

DRIVER_ROWS = 250_000
"""How many rows the driver merges at most."""

PART_ROWS = 1_000_000
"""About how many rows a task merges: it holds them in memory."""

Tables = dict[str, tuple[Run, ...]]


def due(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs that are to be merged next: all of the least rank that has enough of them."""
    by_rank: dict[int, list[Run]] = {}
    for run in runs:
        rank = max(0, math.ceil(math.log(max(run.rows, 1) / _SMALL, FANOUT)))
        by_rank.setdefault(rank, []).append(run)
    for rank in sorted(by_rank):
        if len(by_rank[rank]) >= FANOUT:
            return tuple(by_rank[rank])
    return ()


def _exchanged(runs: Sequence[Run], old: Sequence[Run], new: Run | None) -> tuple[Run, ...]:
    kept = tuple(run for run in runs if run not in old)
    return kept if new is None else (*kept, new)


@dataclass(frozen=True, slots=True)
class _Merge:
    table: str
    old: tuple[Run, ...]
    new: Run | None


class Compactor:
    """Merges the runs of one store."""

    def __init__(
        self, spark: SparkSession, files: Files, layouts: Mapping[str, Layout], words: Words
    ) -> None:
        self._spark = spark
        self._files = files
        self._layouts = layouts
        self._words = words
        self._thread: threading.Thread | None = None
        self._since_us: int | None = None
        self._done: list[_Merge] = []
        self._failure: Exception | None = None
        self._lock = threading.Lock()

    def since_us(self) -> int | None:
        """When the merge began whose files are in no record yet; None when there are no such files."""
        with self._lock:
            return self._since_us

    def adopt(self, tables: Tables) -> Tables:
        """The tables with what was merged in the background.

        A merge that failed is a warning: no refresh needs it, and it is tried again.
        """
        with self._lock:
            done, self._done = self._done, []
            failure, self._failure = self._failure, None
            # The next refresh names the files, or nobody will.
            if self._thread is None or not self._thread.is_alive():
                self._since_us = None
        if failure is not None:
            warnings.warn(f"runs were not merged in the background: {failure}", RuntimeWarning, stacklevel=2)
        tables = dict(tables)
        for merge in done:
            if set(merge.old) <= set(tables[merge.table]):
                tables[merge.table] = _exchanged(tables[merge.table], merge.old, merge.new)
        return tables

    def merge_small(self, tables: Tables) -> Tables:
        """The tables with those runs merged that are due and have few rows; one file for all of them."""
        tables = dict(tables)
        path = f"runs/{uuid.uuid4().hex}.arrow"
        chosen: list[tuple[str, tuple[Run, ...], pa.Table]] = []
        opened = open_part(self._files)
        for name, runs in tables.items():
            old = due(runs)
            if old and sum(run.rows for run in old) <= DRIVER_ROWS:
                pieces = [opened(part) for run in old for part in run.parts]
                chosen.append((name, old, merged(pieces, self._layouts[name])))
        content, parts = packed(path, [table for _, _, table in chosen if table.num_rows])
        if parts:
            self._files.create(path, content)
        places = iter(parts)
        for name, old, table in chosen:
            new = Run(table.num_rows, (next(places),)) if table.num_rows else None
            tables[name] = _exchanged(tables[name], old, new)
        return tables

    def start(self, tables: Tables) -> None:
        """Merge in the background what is due and large; one table at a time."""
        if self._thread is not None and self._thread.is_alive():
            return
        for name, runs in tables.items():
            old = due(runs)
            if old:
                with self._lock:
                    self._since_us = time.time_ns() // 1000
                # So that its job is named for the refresh that made it due.
                context = contextvars.copy_context()
                self._thread = threading.Thread(
                    target=context.run, args=(self._merge, name, old), name="everview-merging", daemon=True
                )
                self._thread.start()
                return

    def wait(self) -> None:
        """Until nothing is being merged."""
        if self._thread is not None:
            self._thread.join()

    def _merge(self, name: str, old: tuple[Run, ...]) -> None:
        try:
            rows = sum(run.rows for run in old)
            tasks = max(self._spark.sparkContext.defaultParallelism, math.ceil(rows / PART_ROWS))
            parts = tuple(part for run in old for part in run.parts)
            what = f"merges runs of {self._words.of_tables([name])}"
            task = entitled(_merging(self._files, parts, self._layouts[name], tasks), what)
            with job(self._spark.sparkContext, what):
                written = self._spark.range(0, tasks, 1, tasks).mapInArrow(task, PLACES).toArrow()
            new = written_run(written)
            with self._lock:
                self._done.append(_Merge(name, old, new))
        except Exception as error:  # noqa: BLE001  (the next refresh warns of it)
            with self._lock:
                self._failure = error


PLACE_NAMES = ("path", "offset", "length", "rows", "low", "high")
PLACES = "path STRING, offset BIGINT, length BIGINT, rows BIGINT, low BIGINT, high BIGINT"
"""The columns of what a task says of a part that it has written."""


def written_run(places: pa.Table) -> Run | None:
    """The run whose parts tasks have written."""
    parts = sorted((Part(**place) for place in places.to_pylist()), key=lambda part: part.low)
    return Run(sum(part.rows for part in parts), tuple(parts)) if parts else None


def write_part(files: Files, table: pa.Table) -> pa.RecordBatch:
    """Write one part; its place."""
    path = f"runs/{uuid.uuid4().hex}.arrow"
    content, (part,) = packed(path, [table])
    files.create(path, content)
    return pa.RecordBatch.from_pylist([{name: getattr(part, name) for name in PLACE_NAMES}])


def _merging(
    files: Files, parts: tuple[Part, ...], layout: Layout, tasks: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = open_part(files)
        for batch in batches:
            for task in batch.column(0).to_pylist():
                low, high = ranges(tasks)[task]
                table = search(Request(parts, layout, None), low, high, opened, None)
                if table is not None and table.num_rows:
                    yield write_part(files, table)

    return run
