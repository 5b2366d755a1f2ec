"""Titan's two computations on Spark against plain Structured Streaming, and a word count against Pathway.

On Spark: tweets in JSON files, a tenth of them twice. Duplicates are dropped, then all words are counted, or
the most frequent ones found. Both read the same files, one of them a batch, on the same cores: plain Spark
with its source of streams, ours with `read_json_files`. Ours keeps the tweets as well, and could fill further
computations from them.

On a device: a file of JSON lines, one word each, is counted by key in one process, in memory and durably.
Pathway wants other versions of pandas and dateutil than we have, and 1.6 GB of disk, so it is put into an
environment of its own: set PATHWAY_PYTHON to a Python that has it, or one is made below the folder for
temporary files. `--quick` does not make one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks import wordcount_plain as plain
from benchmarks.harness import Result
from benchmarks.hub_data import session
from benchmarks.plot import Panel, svg
from benchmarks.wordcount_data import SCHEMA, Tweets, write_tweets, write_words
from everview import streams

N = 10
_FIGURE = Path(__file__).parent.parent / "docs" / "benchmark-wordcount.svg"


def run(*, quick: bool) -> Result:
    """Measure five times with 600k tweets and 1M lines; quick: once with 200 tweets and 2k lines."""
    files, each, lines, rounds = (2, 100, 2_000, 1) if quick else (3, 200_000, 1_000_000, 5)
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        device = _Device(Path(folder), lines).measure(rounds, _pathway(quick=quick))
        bench = _OnSpark(session(quick=quick, cores=2, memory="4g"), Path(folder), files, each)
        bench.measure(rounds, warm=0 if quick else 1)
        spark = bench.figures()
        if not quick:
            bench.draw()
    rows = [*bench.rows(), *device.rows()]
    parameters = {"tweets": files * each, "batch": each, "lines": lines, "rounds": rounds}
    return Result("wordcount", parameters, {**spark, **device.figures()}, rows)


class _OnSpark:
    """Runs of each contender over the same files, in turns."""

    def __init__(self, spark: SparkSession, folder: Path, files: int, each: int) -> None:
        self._spark = spark
        self._folder = folder
        self._each = each
        self._tweets: Tweets = write_tweets(folder / "tweets", files, each, N)
        words = streams.source("tweets").set("tweet_set", key="id", partitions=2)
        counted = words.flat_map(streams.words("text"))
        self._total = streams.Pipeline(counted.count("result"))
        self._top = streams.Pipeline(counted.map_of("occurrences", partitions=2).top_n("result", N))
        self._number = 0
        self._done: dict[str, list[plain.Done]] = {}
        self._contenders: dict[str, Callable[[], plain.Done]] = {
            "total": lambda: self._ours(self._total, self._tweets.total),
            "plain total": lambda: self._theirs(plain.total),
            "top": lambda: self._ours(self._top, self._tweets.top),
            "plain top, complete": lambda: self._theirs(plain.top_complete, N),
            "plain top, foreachBatch": lambda: self._theirs(plain.top_for_each, N),
        }

    def measure(self, rounds: int, warm: int) -> None:
        """Run all in turns; what is run to warm up is not counted."""
        plain.use(self._spark, "memory")
        for number in range(warm + rounds):
            for name, contender in self._contenders.items():
                done = contender()
                if number >= warm:
                    self._done.setdefault(name, []).append(done)

    def _place(self) -> tuple[Path, Path]:
        self._number += 1
        return self._folder / f"store-{self._number}", self._folder / f"checkpoint-{self._number}"

    def _ours(self, pipeline: streams.Pipeline, expected: Any) -> plain.Done:
        store, _ = self._place()
        with streams.open_hub(store, pipeline, spark=self._spark) as hub:
            clock = plain.Clock(self._each)
            hub.subscribe("result", lambda _update: clock.tick())
            hub.read_json_files("tweets", self._tweets.folder, SCHEMA, most=1)
            _check(hub.read("result"), expected)
        return clock.done

    def _theirs(self, job: Callable[..., plain.Done], *more: int) -> plain.Done:
        _, checkpoint = self._place()
        clock, found = plain.Clock(self._each), list[Any]()
        job(plain.stream_of(self._spark, self._tweets, 1), checkpoint, clock, found, *more)
        if more:
            _check(tuple(found), self._tweets.top)
        else:
            _check(found[-1]["count"], self._tweets.total)
        return clock.done

    def seconds(self, name: str) -> float:
        """The median time of a contender."""
        return statistics.median(done[-1][0] for done in self._done[name])

    def figures(self) -> dict[str, float]:
        """Our speed by theirs, round by round, the median; of two ways to rank the faster one."""
        best = min(("plain top, complete", "plain top, foreachBatch"), key=self.seconds)
        return {
            "total_speed_ratio": self._ratio("plain total", "total"),
            "topn_speed_ratio": self._ratio(best, "top"),
            "total_tweets_per_second": self._tweets.count / self.seconds("total"),
            "topn_tweets_per_second": self._tweets.count / self.seconds("top"),
        }

    def _ratio(self, theirs: str, ours: str) -> float:
        pairs = zip(self._done[theirs], self._done[ours], strict=True)
        return statistics.median(a[-1][0] / b[-1][0] for a, b in pairs)

    def rows(self) -> list[tuple[str, str]]:
        """For people."""
        return [
            (
                name,
                f"{self.seconds(name):.2f} s, {self._tweets.count / self.seconds(name):,.0f} tweets a second",
            )
            for name in self._contenders
        ]

    def draw(self) -> None:
        """Tweets a second over time, as in Titan's Figure 3: of each the run of median length."""
        panels = [
            self._panel("total words", {"Everview": "total", "plain Spark": "plain total"}),
            self._panel(
                "top-10 words",
                {
                    "Everview": "top",
                    "complete mode": "plain top, complete",
                    "foreachBatch": "plain top, foreachBatch",
                },
            ),
        ]
        _FIGURE.write_text(svg(panels))

    def _panel(self, title: str, lines: dict[str, str]) -> Panel:
        chosen = {label: _median(self._done[name]) for label, name in lines.items()}
        end = max(done[-1][0] for done in chosen.values())
        x = [end * place / 40 for place in range(41)]
        drawn = {label: [_speed(done, at) / 1000 for at in x] for label, done in chosen.items()}
        return Panel(title, "seconds", "thousand tweets a second", x, drawn)


def _median(runs: Sequence[plain.Done]) -> plain.Done:
    return sorted(runs, key=lambda done: done[-1][0])[len(runs) // 2]


def _speed(done: plain.Done, at: float) -> float:
    """Tweets a second of the batch that is under way at a time; 0 when all are done."""
    before, tweets = 0.0, 0
    for end, count in done:
        if at < end:
            return (count - tweets) / (end - before)
        before, tweets = end, count
    return 0.0


class _Device:
    """A word count by key over JSON lines, in one process."""

    def __init__(self, folder: Path, lines: int) -> None:
        self._folder = folder
        self._lines = folder / "lines.jsonl"
        self._count = lines
        self._expected = write_words(self._lines, lines)
        self._times: dict[str, list[float]] = {}

    def measure(self, rounds: int, pathway: str | None) -> _Device:
        """Run both, in memory and durably, in turns."""
        for number in range(rounds):
            durable = self._folder / f"device-{number}.db"
            self._note("in memory", self._ours(":memory:"))
            self._note("durable", self._ours(str(durable)))
            if pathway is not None:
                self._note("Pathway in memory", self._theirs(pathway))
                self._note("Pathway durable", self._theirs(pathway, str(self._folder / f"pathway-{number}")))
        return self

    def _note(self, name: str, seconds: float) -> None:
        self._times.setdefault(name, []).append(seconds)

    def _ours(self, path: str) -> float:
        counts = streams.source("lines").flat_map(streams.words("word")).map_of("counts")
        start = time.perf_counter()
        with streams.open_device(path, streams.Pipeline(counts)) as device:
            device.read_json_lines("lines", self._lines)
            found = device.read("counts")
        seconds = time.perf_counter() - start
        _check(found, self._expected)
        return seconds

    def _theirs(self, python: str, *store: str) -> float:
        script = str(Path(__file__).with_name("wordcount_pathway.py"))
        done = subprocess.run(
            [python, script, str(self._lines), *store], capture_output=True, text=True, check=True
        )
        told = json.loads(done.stdout.splitlines()[-1])
        _check(told["words"], self._count)
        return float(told["seconds"])

    def figures(self) -> dict[str, float]:
        """Our speed by Pathway's; 0 where it is not installed."""
        if "Pathway durable" not in self._times:
            return {"device_pathway_speed_ratio": 0.0, "device_pathway_memory_speed_ratio": 0.0}
        return {
            "device_pathway_speed_ratio": self._ratio("Pathway durable", "durable"),
            "device_pathway_memory_speed_ratio": self._ratio("Pathway in memory", "in memory"),
        }

    def _ratio(self, theirs: str, ours: str) -> float:
        pairs = zip(self._times[theirs], self._times[ours], strict=True)
        return statistics.median(a / b for a, b in pairs)

    def rows(self) -> list[tuple[str, str]]:
        """For people."""
        rows = [
            (f"device, {name}", f"{statistics.median(times):.2f} s for {self._count:,} lines")
            for name, times in self._times.items()
        ]
        if "Pathway durable" not in self._times:
            rows.append(("Pathway", "not measured: set PATHWAY_PYTHON to a Python that has it"))
        return rows


def _check(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"wrong result: {str(found)[:80]} instead of {str(expected)[:80]}")


def _pathway(*, quick: bool) -> str | None:
    """A Python that has Pathway; made, unless it must be quick."""
    given = os.environ.get("PATHWAY_PYTHON")
    if given or quick:
        return given
    folder = Path(tempfile.gettempdir()) / "everview-pathway"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing Pathway into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "pathway"], check=True)
        (folder / "installed").touch()
    return str(python)
