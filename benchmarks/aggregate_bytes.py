"""A count by key at a site that hosts only the count: bytes as partial aggregates, against as rows.

Owners write rows, a relay reads them all, and two sites read the relay: one hosts the view alone, and is told
what each owner's rows come to; the other hosts the rows, and counts them itself. Rows are as small as a row
can be, a key and a number beside the owner, so that the comparison is hard on the aggregates. All bytes of a
sync count, in both directions. Then owners write a little more, and both read again.
"""

from __future__ import annotations

import random
import time

import everview as ev
from benchmarks.harness import Result

_PROGRAM = """
CREATE TABLE event (site TEXT NOT NULL, key TEXT NOT NULL, n BIGINT NOT NULL) WITH (owner = 'site');
CREATE MATERIALIZED VIEW counted AS SELECT key, count(*) AS n FROM event GROUP BY key;
"""
_OWNERS = 10
_MORE = 1_000
"""So many rows are written between two later syncs, to keys at random."""
_SYNCS = 5
_BATCH = 50_000


def run(*, quick: bool) -> Result:
    """Measure with 1M rows of ten owners, and of one, and 1,000 keys; quick: 5,000 rows and 20 keys."""
    rows, keys = (5_000, 20) if quick else (1_000_000, 1_000)
    figures: dict[str, float] = {}
    shown = [("rows, keys", f"{rows:,}, {keys:,}")]
    for owners in (_OWNERS, 1):
        world = _World(owners, rows, keys)
        first = world.sync()
        later = [world.write_and_sync() for _ in range(_SYNCS)]
        name = "bytes_ratio" if owners == _OWNERS else "one_owner_bytes_ratio"
        figures[name] = first["partial"] / first["rows"]
        more = {way: sum(found[way] for found in later) for way in first}
        figures[name.replace("bytes", "later_bytes")] = more["partial"] / more["rows"]
        who = f"{owners} owner{'s' if owners > 1 else ''}"
        shown += [
            (f"{who}: first sync, as rows", f"{first['rows']:,} bytes"),
            (f"{who}: first sync, as partial aggregates", f"{first['partial']:,} bytes"),
            (f"{who}: ratio", f"1/{1 / figures[name]:.0f}"),
            (f"{who}: {_SYNCS} syncs after {_MORE:,} rows each, as rows", f"{more['rows']:,} bytes"),
            (f"{who}: the same, as partial aggregates", f"{more['partial']:,} bytes"),
            (f"{who}: seconds of the first sync, as rows", f"{world.seconds['rows']:.2f}"),
            (f"{who}: seconds of the first sync, as partial aggregates", f"{world.seconds['partial']:.2f}"),
        ]
        world.close()
    return Result("aggregate_bytes", {"rows": rows, "keys": keys, "owners": _OWNERS}, figures, shown)


class _World:
    """Owners, a relay that holds all rows, and two that read it."""

    def __init__(self, owners: int, rows: int, keys: int) -> None:
        program = ev.Program.parse(_PROGRAM)
        self._chance = random.Random(1)
        self._keys, self._next = keys, 0
        self._owners = [ev.Site.open(":memory:", program, name=f"device {n}") for n in range(owners)]
        self._relay = ev.Site.open(":memory:", program, name="relay", hosts={"event"})
        self._readers = {
            "partial": ev.Site.open(":memory:", program, name="view", hosts={"counted"}),
            "rows": ev.Site.open(":memory:", program, name="rows"),
        }
        self.seconds: dict[str, float] = {}
        for owner in self._owners:
            for start in range(0, rows // owners, _BATCH):
                self._write(owner, min(_BATCH, rows // owners - start))
            self._relay.sync(owner)

    def _write(self, owner: ev.Site, count: int) -> None:
        chosen = self._chance.choices(range(self._keys), k=count)
        owner.insert("event", [(owner.name, f"key {key}", self._next + n) for n, key in enumerate(chosen)])
        self._next += count

    def write_and_sync(self) -> dict[str, int]:
        """A little more; return the bytes of both readers' syncs."""
        for owner in self._owners:
            self._write(owner, _MORE // len(self._owners))
            self._relay.sync(owner)
        return self.sync()

    def sync(self) -> dict[str, int]:
        """Both read the relay; return the bytes of each."""
        found = {}
        for way, reader in self._readers.items():
            start = time.perf_counter()
            report = reader.sync(self._relay)
            self.seconds.setdefault(way, time.perf_counter() - start)
            found[way] = report.sent_bytes + report.received_bytes
        counts = [reader.rows("counted") for reader in self._readers.values()]
        if counts[0] != counts[1]:
            raise AssertionError("the two readers count differently")
        return found

    def close(self) -> None:
        """Close all sites."""
        for site in (*self._owners, self._relay, *self._readers.values()):
            site.close()
