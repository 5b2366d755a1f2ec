"""Two sites that meet: rows merged a second, what they cost on the wire, a first sync, an empty one.

Both sites keep their relation indexed, with three views over it, in files with durable commits. Merging is
measured at the reader alone: asking, decoding, joining, bringing the views up to date and committing, in
cuts of 100,000 rows, and of 10,000; the sender's time is not counted. The first sync is the whole of it, both
sites on one processor. An empty sync is a whole exchange that moves nothing, over a tenth and over all of the
rows.
"""

from __future__ import annotations

import gc
import random
import resource
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import everview as ev
from benchmarks.harness import Result, interleaved
from benchmarks.wire_ratio import wire_ratio

_PROGRAM = """
CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL, c BIGINT NOT NULL, d BIGINT NOT NULL,
                e TEXT NOT NULL);
CREATE TABLE s (k BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE MATERIALIZED VIEW projection AS SELECT b, c FROM r;
CREATE MATERIALIZED VIEW joined AS SELECT r.a, r.b, s.k FROM r JOIN s ON r.c = s.c;
CREATE MATERIALIZED VIEW grouped AS
  SELECT b, count(*) AS n, sum(d) AS total, max(a) AS most FROM r GROUP BY b;
"""
_VIEWS = ("projection", "joined", "grouped")
_ROWS_OF_S = 1000
_BATCH = 100_000
_EMPTY_SYNCS = 41


def run(*, quick: bool) -> Result:
    """Measure with 1M rows, in cuts of 100k and of 10k; quick: 10k, in cuts of 1k and of 100."""
    large, cuts = (10_000, 3) if quick else (1_000_000, 6)
    sizes = (1_000, 100) if quick else (100_000, 10_000)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        small_pair = _pair(root, "small", large // 10)
        large_pair = _pair(root, "large", large)
        pairs = {"small": small_pair, "large": large_pair}
        gc.collect()
        for name, (sender, reader) in pairs.items():
            start = time.perf_counter()
            reader.sync(sender)
            figures[f"first_sync_{name}_seconds"] = time.perf_counter() - start
            _check(sender, reader)
            reader.sync(sender)  # now each knows that the other has everything
        figures["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        empty = interleaved(
            {name: partial(_nothing, *pair) for name, pair in pairs.items()}, repeats=_EMPTY_SYNCS
        )
        first, merged = large, {}
        for cut in sizes:
            taken = [_merge(*large_pair, first + number * cut, cut) for number in range(cuts)]
            merged[cut] = cut / statistics.median(taken[1:])
            first += cuts * cut
        _check(*large_pair)
        for site in (*small_pair, *large_pair):
            site.close()
        unchanged = _return_unchanged(root)
    ratios = wire_ratio()
    headline = {
        "merged_rows_per_second": merged[sizes[0]],
        "merged_rows_per_second_10k": merged[sizes[1]],
        "wire_ratio": ratios.worst,
        "first_sync_1m_seconds": figures["first_sync_large_seconds"],
        "empty_sync_growth_100k_to_1m": empty["large"] / empty["small"],
        "empty_sync_ms": empty["large"] * 1000,
        "empty_sync_bytes": _empty_bytes(200),
        "same_rows_three_peers_ratio": _three_peers(sizes[0]),
        "return_unchanged_bytes": unchanged,
    }
    shapes = {f"wire_ratio {shape}": ratio for shape, ratio in ratios.by_shape.items()}
    figures = {**headline, **figures, **shapes}
    table = [(name, f"{value:,.2f}") for name, value in figures.items()]
    parameters = {"rows": large, "cut": sizes[0], "cuts": cuts - 1, "synchronous": "FULL"}
    return Result("sync", parameters, figures, table)


def _row(rng: random.Random, number: int) -> tuple[int, int, int, int, str]:
    return (
        number,
        rng.randrange(1000),
        rng.randrange(1587),
        rng.randrange(10**6),
        f"note {rng.randrange(5000)}",
    )


def _pair(folder: Path, name: str, count: int) -> tuple[ev.Site, ev.Site]:
    """A site with so many rows, and an empty one."""
    program = ev.Program.parse(_PROGRAM)
    sender, reader = (
        ev.Site.open(folder / f"{name}-{who}.db", program, name=who) for who in ("sender", "reader")
    )
    rng = random.Random(count)
    sender.insert("s", [(k, k) for k in range(_ROWS_OF_S)])
    for start in range(0, count, _BATCH):
        sender.insert("r", [_row(rng, number) for number in range(start, min(start + _BATCH, count))])
    return sender, reader


def _nothing(sender: ev.Site, reader: ev.Site) -> None:
    report = reader.sync(sender)
    if report.sent_rows or report.received_rows:
        raise AssertionError("an empty sync moved rows")


def _merge(sender: ev.Site, reader: ev.Site, first: int, cut: int) -> float:
    """Give the sender a cut's worth of new rows; return the seconds that the reader takes to have them."""
    rng = random.Random(first)
    sender.insert("r", [_row(rng, number) for number in range(first, first + cut)])
    exchange = reader.replica.exchange(sender.name)
    taken = 0.0
    start = time.perf_counter()
    message: bytes | None = exchange.open()
    while message is not None:
        taken += time.perf_counter() - start
        answer = sender.replica.answer(message)
        start = time.perf_counter()
        message = exchange.receive(answer)
    if exchange.report.received_rows != cut:
        raise AssertionError(f"{exchange.report.received_rows} of {cut} rows came")
    return taken + time.perf_counter() - start


def _named(names: str) -> list[ev.Site]:
    program = ev.Program.parse(_PROGRAM)
    return [ev.Site.open(":memory:", program, name=name) for name in names.split()]


def _bytes(one: ev.Site, other: ev.Site) -> int:
    report = one.sync(other)
    return report.sent_bytes + report.received_bytes


def _empty_bytes(count: int) -> int:
    """What two sites say to each other that have seen rows of so many, when nothing is new."""
    one, other = _named("one other")
    for number in range(count):
        (writer,) = _named(f"writer-{number}")
        writer.insert("r", [_row(random.Random(number), number)])
        one.sync(writer)
    for _ in range(2):
        other.sync(one)
    return _bytes(other, one)


def _three_peers(rows: int) -> float:
    """Bytes when the same rows are offered by three peers, over those when one offers them."""
    first, second, third, reader, alone = _named("first second third reader alone")
    rng = random.Random(1)
    first.insert("r", [_row(rng, number) for number in range(rows)])
    for relay in (second, third):
        relay.sync(first)
    return sum(_bytes(reader, peer) for peer in (first, second, third)) / _bytes(alone, first)


def _return_unchanged(folder: Path) -> int:
    """Bytes of the first sync of a site that was away while nothing that it hosts has changed."""
    program = ev.Program.parse(_PROGRAM + "CREATE TABLE more (a BIGINT NOT NULL);")
    base = ev.Site.open(folder / "base.db", program, name="base")
    away = ev.Site.open(folder / "away.db", program, name="away", hosts={"r", "s", *_VIEWS})
    base.insert("r", [_row(random.Random(1), number) for number in range(1000)])
    for _ in range(2):
        away.sync(base)
    others = [ev.Site.open(":memory:", program, name=name) for name in "xyz"]
    for turn in range(400):  # others write what it does not host, and meet
        other = others[turn % len(others)]
        other.insert("more", [(turn,)])
        other.sync(base)
    found = _bytes(away, base)
    for site in (base, away, *others):
        site.close()
    return found


def _check(sender: ev.Site, reader: ev.Site) -> None:
    for view in ("r", *_VIEWS):
        count = f"SELECT count(*) AS n FROM {view}"
        if sender.query(count) != reader.query(count):
            raise AssertionError(f"{view} is not the same at both sites")
