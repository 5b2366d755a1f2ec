"""What an answer costs a hub among many devices: seconds of a core for each message, without HTTP and Spark.

    python -m benchmarks.exchange_cost [DEVICES] [SYNCS]

A hub's gate, in a file, and real sites in memory, all in one thread. Every device has met the gate; then
they come by turns, and every tenth time with a row. What is counted is the processor time of `respond` alone:
of the first message of a sync, which asks, and of the second, by which a device that has got rows of others
says that it has them.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict

import everview as ev
from benchmarks.devices import HOSTS, PROGRAM, WRITES
from benchmarks.harness import Result
from everview.hub.gate import Gate
from everview.replication.protocol.exchange import Exchange


def measure(devices: int, syncs: int) -> Result:
    """Let them come."""
    program, random_ = ev.Program.parse(PROGRAM), random.Random(7)
    taken: dict[int, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        gate = Gate(f"{folder}/gate.db", program, "hub", 1)
        gate.start(0)
        sites = [
            ev.Site.open(":memory:", program, name=f"device-{number}", hosts=HOSTS)
            for number in range(devices)
        ]
        for turn in range(3):
            for number, site in enumerate(sites):
                if turn == 0:
                    site.insert("note", [(number, -1, site.name)])
                _sync(site, gate, defaultdict(list))
        for written in range(syncs):
            number = random_.randrange(devices)
            if random_.random() < WRITES:
                sites[number].insert("note", [(number, written, sites[number].name)])
            _sync(sites[number], gate, taken)
        gate.close()
        for site in sites:
            site.close()
    everything = [seconds for some in taken.values() for seconds in some]
    figures = {
        "mean_ms": 1000 * statistics.mean(everything),
        "asking_p50_ms": 1000 * statistics.median(taken[0]),
        "telling_p50_ms": 1000 * statistics.median(taken[1] or [0.0]),
    }
    return Result("exchange_cost", {"devices": devices, "messages": len(everything)}, figures)


def _sync(site: ev.Site, gate: Gate, taken: dict[int, list[float]]) -> None:
    exchange = Exchange(site.replica, "hub")
    message: bytes | None = exchange.open()
    number = 0
    while message is not None:
        began = time.thread_time()
        answer = gate.replica.respond(message)
        taken[number].append(time.thread_time() - began)
        message, number = exchange.receive(answer), number + 1


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    measure(*(given + [200, 1000][len(given) :])).print()
