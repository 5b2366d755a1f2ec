"""Many devices at one hub: `everview hub` as a process, and devices that sync with it over loopback HTTP.

Devices are real sites (`benchmarks.devices`), each with a connection of its own. Each syncs once in a period,
as `everview sync --watch` does by itself every 5 s, and has written a row before every tenth time. A feeder
pushes a batch of rows now and then; the refresh that takes it in is timed by the hub itself, while the
devices are at it and while they rest, in turn. The hub, with Spark and all that this starts, has one half of
the machine's cores and the devices the other, so that what is measured is what serving costs the hub, and not
what the devices cost the machine.

At the end a new device takes in the largest relation, while the memory of the hub's process is watched.
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
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

import everview as ev
from benchmarks.devices import PROGRAM
from benchmarks.harness import Result
from benchmarks.hub_process import HubProcess

_GENERATORS = 2


@dataclass(frozen=True, slots=True)
class _Size:
    devices: int
    every: float
    """Seconds between two syncs of a device."""
    places: int
    batch: int
    rounds: int
    feeds: int
    """How many batches are fed in each half of a round."""


_FULL = _Size(200, 5.0, 200_000, 2_000, 5, 2)
_QUICK = _Size(8, 0.5, 500, 50, 1, 1)


def run(*, quick: bool = False) -> Result:
    """Measure."""
    size = _QUICK if quick else _FULL
    cores = sorted(os.sched_getaffinity(0))
    half = max(len(cores) // 2, 1)
    hub_cores, device_cores = cores[:half], cores[half:] or cores
    if quick:  # whoever else is at work, nobody waits for a core of its own
        hub_cores = device_cores = cores
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as name:
        folder = Path(name)
        (folder / "program.sql").write_text(PROGRAM)
        if not quick:
            _load(folder / "hub", size.places)
        with (
            HubProcess(folder, hub_cores, quick=quick) as hub,
            _Crowd(hub.address, size, device_cores) as crowd,
        ):
            if quick:
                _push(hub, size.places)
            feeder = _Feeder(hub, size)
            for _ in range(2):
                feeder.feed()
            quiet: list[float] = []
            busy: list[float] = []
            seconds = 0.0
            before = hub.memory("VmRSS")
            for _ in range(size.rounds):
                quiet += [feeder.feed() for _ in range(size.feeds)]
                crowd.tell("go")
                began = time.monotonic()
                time.sleep(min(size.every, 1.0))
                busy += [feeder.feed() for _ in range(size.feeds)]
                while time.monotonic() - began < size.every:  # everybody's turn
                    time.sleep(0.05)
                crowd.tell("rest", "resting")
                seconds += time.monotonic() - began
            peak = hub.memory("VmHWM")
            told = crowd.end()
            newcomer = _newcomer(hub)
    times = sorted(ms for one in told for ms in one["ms"])
    syncs, failed = (sum(one[what] for one in told) for what in ("syncs", "failed"))
    figures = {
        "requests_per_second": len(times) / seconds,
        "p50_ms": statistics.median(times),
        "p99_ms": times[len(times) * 99 // 100],
        "refresh_slowdown": statistics.median(busy) / statistics.median(quiet),
        "refresh_quiet_ms": 1000 * statistics.median(quiet),
        "refresh_busy_ms": 1000 * statistics.median(busy),
        "rss_before_mb": before / 2**20,
        "peak_rss_mb": peak / 2**20,
        "failed_syncs": failed,
        **newcomer,
    }
    parameters = {"devices": size.devices, "every_seconds": size.every, "places": size.places}
    parameters |= {"batch": size.batch, "refreshes": len(busy), "syncs": syncs}
    parameters |= {"hub_cores": len(hub_cores), "device_cores": len(device_cores)}
    return Result("hub_fanout", parameters, figures)


def _load(store: Path, places: int) -> None:
    """A hub with many rows, which the refreshes look up; in a process of its own, for it has Spark."""
    script = (
        "import sys, everview as ev\nfrom everview.hub import Hub\n"
        "from everview.engines.spark.session import start_session\n"
        "from benchmarks.devices import PROGRAM\n"
        "with Hub.open(sys.argv[1], ev.Program.parse(PROGRAM)) as hub:\n"
        "    rows = start_session().range(int(sys.argv[2])).selectExpr('id', 'id % 100 AS kind')\n"
        "    hub.insert('place', rows)\n"
        "    hub.refresh()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(store), str(places)], check=True)


class _Feeder:
    """A site that pushes batches, of which each is one refresh's work."""

    def __init__(self, hub: HubProcess, size: _Size) -> None:
        self._hub, self._size, self._next = hub, size, 0
        self._site = ev.Site.open(":memory:", ev.Program.parse(PROGRAM), name="feeder", hosts={"feed"})

    def feed(self) -> float:
        """Push a batch; the seconds of the refresh that took it in."""
        first, self._next = self._next, self._next + self._size.batch
        since = self._hub.count()
        rows = [(n, n * 7919 % self._size.places, n % 10) for n in range(first, self._next)]
        self._site.insert("feed", rows)
        while True:
            try:
                self._site.sync(self._hub.address)
                return self._hub.taken(since, self._size.batch)
            except ev.SyncError as error:
                if not error.retry:
                    raise


def _push(hub: HubProcess, places: int) -> None:
    """The same rows, few enough to come over HTTP."""
    with ev.Site.open(":memory:", ev.Program.parse(PROGRAM), name="loader", hosts={"place"}) as site:
        site.insert("place", [(n, n % 100) for n in range(places)])
        site.sync(hub.address)


class _Crowd:
    """The processes of the devices."""

    def __init__(self, address: str, size: _Size, cores: Collection[int]) -> None:
        share = size.devices // _GENERATORS

        def words(number: int) -> list[str]:
            return [str(number * share), str(share), str(size.every)]

        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.devices", address, *words(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(_GENERATORS)
        ]
        for process in self._processes:
            os.sched_setaffinity(process.pid, cores)
        self._hear("ready")

    def _hear(self, word: str) -> None:
        for process in self._processes:
            assert process.stdout is not None  # noqa: S101
            if process.stdout.readline().strip() != word:
                raise RuntimeError("the devices have ended")

    def tell(self, word: str, answer: str = "") -> None:
        """Say a word to all, and wait for their answer."""
        for process in self._processes:
            assert process.stdin is not None  # noqa: S101
            process.stdin.write(word + "\n")
            process.stdin.flush()
        if answer:
            self._hear(answer)

    def end(self) -> list[dict[str, Any]]:
        """What each has measured."""
        self.tell("end")
        found = []
        for process in self._processes:
            assert process.stdout is not None  # noqa: S101
            found.append(json.loads(process.stdout.readline()))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def _newcomer(hub: HubProcess) -> dict[str, float]:
    """A device that takes in all places, and what that costs the hub's process."""
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as name:
        program = ev.Program.parse(PROGRAM)
        with ev.Site.open(Path(name) / "new.db", program, name="newcomer", hosts={"place"}) as site:
            before, most = hub.memory("VmRSS"), [0]
            ended = threading.Event()

            def watch() -> None:
                while not ended.wait(0.02):
                    most[0] = max(most[0], hub.memory("VmRSS"))

            watcher = threading.Thread(target=watch)
            watcher.start()
            started = time.perf_counter()
            try:
                rows = site.sync(hub.address).received_rows
            finally:
                ended.set()
                watcher.join()
            taken = time.perf_counter() - started
    httpx.get(hub.address + "/v1/health").raise_for_status()
    return {
        "first_sync_rows_per_second": rows / taken,
        "first_sync_growth_mb": (most[0] - before) / 2**20,
    }
