"""Many devices in one process: real sites that sync over HTTP, each every so often, while they are told to.

    python -m benchmarks.devices ADDRESS FIRST COUNT EVERY

Standard input says `go`, `rest` or `end`; standard output has `ready`, then `resting` when all are, and in
the end one line of JSON: the milliseconds of each request, how many syncs there were and how many failed.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

import everview as ev
from everview.replication.transports.http import HttpTransport

PROGRAM = """
CREATE TABLE note (device BIGINT, number BIGINT, text TEXT);
CREATE TABLE place (id BIGINT PRIMARY KEY, kind BIGINT);
CREATE TABLE feed (id BIGINT, place BIGINT, value BIGINT);
CREATE MATERIALIZED VIEW notes AS SELECT device, count(*) AS n FROM note GROUP BY device;
CREATE MATERIALIZED VIEW per_kind AS
    SELECT kind, count(*) AS n, sum(value) AS total
    FROM feed JOIN place ON feed.place = place.id GROUP BY kind;
"""
HOSTS = {"note", "notes"}
WRITES = 0.1
"""In how many of its syncs a device has written a row before."""
THREADS = 8


class _Timed(HttpTransport):
    """A transport that notes how long each request took, from first byte to last."""

    times: list[float]

    def _once(
        self, method: str, url: httpx.URL, more: dict[str, Any]
    ) -> tuple[int, Mapping[str, str], bytes]:
        started = time.perf_counter()
        try:
            return super()._once(method, url, more)
        finally:
            self.times.append(1000 * (time.perf_counter() - started))


class _Devices:
    def __init__(self, address: str, first: int, count: int, every: float) -> None:
        program = ev.Program.parse(PROGRAM)
        self._every = every
        self._random = random.Random(first)
        self._times: list[float] = []
        self._sites = [
            ev.Site.open(":memory:", program, name=f"device-{first + n}", hosts=HOSTS) for n in range(count)
        ]
        self._ways = [_Timed(address) for _ in range(count)]
        for way in self._ways:
            way.times = self._times
        self._written = [0] * count
        self._going = threading.Event()
        self._syncs = self._failed = 0

    def meet(self) -> None:
        """The first sync of each, which is not counted."""
        for number in range(len(self._sites)):
            self._sites[number].insert("note", [(number, -1, self._sites[number].name)])
            self._sync(number)
        self._times.clear()
        self._syncs = self._failed = 0

    def go(self) -> threading.Thread:
        """Let every device sync, at a moment of its own in each period."""
        self._going.set()
        thread = threading.Thread(target=self._loop, daemon=True)
        thread.start()
        return thread

    def rest(self) -> None:
        self._going.clear()

    def _loop(self) -> None:
        due = [(time.monotonic() + self._random.uniform(0, self._every), n) for n in range(len(self._sites))]
        with ThreadPoolExecutor(THREADS) as pool:
            while self._going.is_set():
                due.sort()
                when, number = due[0]
                left = when - time.monotonic()
                if left > 0:
                    time.sleep(min(left, 0.05))
                    continue
                due[0] = (max(when, time.monotonic() - self._every) + self._every, number)
                pool.submit(self._turn, number)

    def _turn(self, number: int) -> None:
        if self._going.is_set():
            if self._random.random() < WRITES:
                self._written[number] += 1
                site = self._sites[number]
                site.insert("note", [(number, self._written[number], f"from {site.name}")])
            self._sync(number)

    def _sync(self, number: int) -> None:
        self._syncs += 1
        try:
            self._sites[number].sync(self._ways[number])
        except ev.EverviewError:
            self._failed += 1

    def report(self) -> dict[str, object]:
        return {"ms": [round(one, 3) for one in self._times], "syncs": self._syncs, "failed": self._failed}


def main(address: str, first: int, count: int, every: float) -> None:
    """Do as standard input says."""
    devices = _Devices(address, first, count, every)
    devices.meet()
    print("ready", flush=True)
    thread: threading.Thread | None = None
    for line in sys.stdin:
        match line.strip():
            case "go":
                thread = devices.go()
            case "rest":
                devices.rest()
                if thread is not None:
                    thread.join()
                print("resting", flush=True)
            case "end":
                print(json.dumps(devices.report()), flush=True)
                return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
