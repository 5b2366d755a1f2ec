"""The first sync of a device with a hub that has many rows: how long it takes, and the memory of both.

    python -m benchmarks.hub_first_sync [ROWS]

`everview hub` is a process of its own, and so is each device; they talk over loopback HTTP. One device takes
a tenth of the rows, another all of them, each with a view over them that it computes itself. Memory is what a
process has at most during the sync, above what it had before: it must not follow the rows. The hub is started
twice, so that what it took to fill its gate is not in what it has before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol

import everview as ev
from benchmarks.harness import Result
from benchmarks.hub_process import HubProcess, forget_peak, memory

ROWS = 2_000_000
KINDS = 100
PROGRAM = "".join(
    f"CREATE TABLE {name} (id BIGINT, kind BIGINT, label TEXT);"
    f"CREATE MATERIALIZED VIEW {name}_kinds AS "
    f"SELECT kind, count(*) AS n, sum(id) AS total FROM {name} GROUP BY kind;"
    for name in ("first", "few", "many")
)
COLUMNS = ("id", f"id % {KINDS} AS kind", "concat('label ', id % 1009) AS label")


def measure(rows: int) -> Result:
    """Load a hub, and let two devices come to it."""
    sizes = {"first": 1, "few": rows // 10, "many": rows}  # what the first to come costs is not counted
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as name:
        folder = Path(name)
        (folder / "program.sql").write_text(PROGRAM)
        _load(folder / "hub", sizes)
        cores = sorted(os.sched_getaffinity(0))
        began = time.monotonic()
        with HubProcess(folder, cores, quick=False):
            filled = time.monotonic() - began
        figures: dict[str, float] = {"first_start_seconds": filled}
        with HubProcess(folder, cores, quick=False) as hub:
            for relation, count in sizes.items():
                found = first_sync(folder / f"{relation}.db", hub, relation, count)
                figures |= found if count > 1 else {}
    return Result("hub_first_sync", {"rows": rows, "kinds": KINDS}, figures)


def _load(store: Path, sizes: dict[str, int]) -> None:
    script = (
        "import json, sys, everview as ev\nfrom everview.hub import Hub\n"
        "from everview.engines.spark.session import start_session\n"
        "from benchmarks.hub_first_sync import COLUMNS, PROGRAM\n"
        "with Hub.open(sys.argv[1], ev.Program.parse(PROGRAM)) as hub:\n"
        "    for name, count in json.loads(sys.argv[2]).items():\n"
        "        hub.insert(name, start_session().range(count).selectExpr(*COLUMNS))\n"
        "    hub.refresh()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(store), json.dumps(sizes)], check=True)


class Server(Protocol):
    """A hub that is reached, and whose memory is seen."""

    address: str

    def forget_peak(self) -> int:
        """Begin to count the most memory anew; the bytes of now."""

    def memory(self, what: str) -> int:
        """The bytes of now, VmRSS, or the most there have been, VmHWM."""


def first_sync(path: Path, hub: Server, relation: str, count: int, cache: int = 0) -> dict[str, float]:
    """Let a device take in a relation; what that took, and what it cost both of memory.

    SQLite keeps up to 64 MB of a device's file in memory; `cache` is another number of KB.
    """
    before = hub.forget_peak()
    told = _device(path, hub.address, relation, count, cache)
    growth = hub.memory("VmHWM") - before
    return {
        f"{relation}_rows": count,
        f"{relation}_seconds": told["seconds"],
        f"{relation}_cpu_seconds": told["cpu_seconds"],
        f"{relation}_rows_per_second": count / told["seconds"],
        f"{relation}_hub_growth_mb": growth / 2**20,
        f"{relation}_device_growth_mb": told["growth"] / 2**20,
    }


def _device(path: Path, address: str, relation: str, count: int, cache: int) -> dict[str, float]:
    """A device in a process of its own."""
    words = [str(path), address, relation, str(count), str(cache)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.hub_first_sync", "--device", *words],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def be_a_device(path: str, address: str, relation: str, count: int, cache: int = 0) -> dict[str, float]:
    """Take in a relation, compute its view, and see that all rows are there and no others."""
    hosts = {relation, f"{relation}_kinds"}
    with ev.Site.open(path, ev.Program.parse(PROGRAM), name=f"device-{relation}", hosts=hosts) as site:
        if cache:
            site._store.writer.connection.execute(f"PRAGMA cache_size = {-cache}")  # noqa: SLF001
        before, began, cpu = forget_peak("self"), time.perf_counter(), time.process_time()
        received = site.sync(address).received_rows
        seconds, spent = time.perf_counter() - began, time.process_time() - cpu
        growth = memory("self", "VmHWM") - before
        if received != count or not _has_all(site, relation, count):
            raise RuntimeError(f"{received} rows of {relation} came, and they are not the {count} of the hub")
    return {"seconds": seconds, "cpu_seconds": spent, "growth": growth}


def _has_all(site: ev.Site, relation: str, count: int) -> bool:
    right = f"kind = id % {KINDS} AND label = 'label ' || CAST(id % 1009 AS TEXT)"
    told = "count(*) AS n, count(DISTINCT id) AS ids, min(id) AS least, max(id) AS greatest"
    (found,) = site.query(f"SELECT {told} FROM {relation} WHERE {right}")
    ids = {kind: range(kind, count, KINDS) for kind in range(min(KINDS, count))}
    kinds = [(kind, len(some), sum(some)) for kind, some in ids.items()]
    all_ids = {"n": count, "ids": count, "least": 0, "greatest": count - 1}
    return found == all_ids and site.rows(f"{relation}_kinds") == kinds


if __name__ == "__main__":
    if sys.argv[1:2] == ["--device"]:
        place, where, what, *numbers = sys.argv[2:]
        print(json.dumps(be_a_device(place, where, what, *map(int, numbers))))
    else:
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS).print()
