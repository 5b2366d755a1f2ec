"""Streams' experiments (§8, figures 3 to 6): a view over R1(A, B, C, D, E) and R2(K, C), grown and shrunk.

R1 gets 100k rows in batches of 10k, one transaction each, and loses them again. The paper does not state
the distribution; B out of 90 and C out of 1587 give its view sizes: 90 × 1587 combinations leave about
72k of them hit by 100k rows, and R2's 1000 rows cover 1000 of the 1587 values of C, so that about 63k
rows of R1 find a partner. The site and the counting implementation take turns, batch by batch, on stores
of the same durability.

The paper's own setting has the view at a site without R1 and R2, fed by deltas of derivations: a second site
hosts only the view and receives from the first what each batch changed. Its seconds are those it spends on
asking, decoding and applying; the sender's are not counted.
"""

from __future__ import annotations

import gc
import random
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import everview as ev
from benchmarks.counting import Counting, Row
from benchmarks.harness import Result
from benchmarks.plot import Panel, svg

VALUES_OF_B = 90
VALUES_OF_C = 1587
ROWS_OF_R2 = 1000

_RELATIONS = """
CREATE TABLE r1 (a BIGINT NOT NULL, b BIGINT NOT NULL, c BIGINT NOT NULL, d BIGINT NOT NULL,
                 e BIGINT NOT NULL);
CREATE TABLE r2 (k BIGINT NOT NULL, c BIGINT NOT NULL);
"""
_VIEWS = {
    "projection": "SELECT DISTINCT b, c FROM r1",
    "join": "SELECT DISTINCT r1.a, r1.b, r1.c, r1.d, r1.e, r2.k FROM r1 JOIN r2 ON r1.c = r2.c",
}
_DOCS = Path(__file__).parents[1] / "docs"


@dataclass(slots=True)
class _Round:
    """Seconds per batch, of each, and what was left after the inserts."""

    insert: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    delete: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    view_tuples: int = 0
    bytes: dict[str, int] = field(default_factory=dict)
    processor: float = 0.0
    """Seconds of processor time that the site's inserts took: what they take on an idle machine."""


def run(view: str, *, quick: bool) -> Result:
    """Measure one view; quick: 4k rows in batches of 1k."""
    rows, batch, repeats = (4_000, 1_000, 2) if quick else (100_000, 10_000, 10)
    rounds = [_round(view, rows, batch, first=number % 2) for number in range(repeats)]
    sizes = range(batch, rows + 1, batch)
    last = len(sizes)
    tuples = rounds[0].view_tuples
    extra, derived_extra = (
        statistics.median(r.bytes[who] - r.bytes["counting"] for r in rounds) / tuples
        for who in ("site", "derived")
    )
    figures = {
        "insert_time_ratio": _ratio([r.insert for r in rounds], last),
        "delete_time_ratio": _ratio([r.delete for r in rounds], last),
        "extra_bytes_per_tuple": extra,
        "rows_per_second": rows / _seconds([r.insert for r in rounds], "site", last),
        "rows_per_processor_second": rows / statistics.median(r.processor for r in rounds),
        "delete_rows_per_second": rows / _seconds([r.delete for r in rounds], "site", last),
        "derived_insert_time_ratio": _ratio([r.insert for r in rounds], last, "derived"),
        "derived_delete_time_ratio": _ratio([r.delete for r in rounds], last, "derived"),
        "derived_extra_bytes_per_tuple": derived_extra,
        "view_tuples": tuples,
    }
    table = [(name, f"{value:,.2f}" if value < 1000 else f"{value:,.0f}") for name, value in figures.items()]
    for title, taken in (("insert", [r.insert for r in rounds]), ("delete", [r.delete for r in rounds])):
        for count, size in enumerate(sizes, 1):
            ours, theirs = (_seconds(taken, who, count) for who in ("site", "counting"))
            ratio = _ratio(taken, count)
            table.append((f"{title} {size:,}", f"{ours:.3f} s / {theirs:.3f} s = {ratio:.2f}"))
    if not quick:
        _draw(view, rounds, list(sizes))
    parameters = {"rows": rows, "batch": batch, "r2": ROWS_OF_R2, "repeats": repeats, "synchronous": "FULL"}
    return Result(view, parameters, figures, table)


def _round(view: str, count: int, batch: int, *, first: int) -> _Round:
    """Grow and shrink both stores once; `first` says who begins a turn."""
    rng = random.Random(7)
    r2 = [(k, c) for k, c in enumerate(rng.sample(range(VALUES_OF_C), ROWS_OF_R2))]
    rows: list[Row] = [
        (
            a,
            rng.randrange(VALUES_OF_B),
            rng.randrange(VALUES_OF_C),
            rng.randrange(10**6),
            rng.randrange(10**6),
        )
        for a in range(count)
    ]
    batches = [rows[start : start + batch] for start in range(0, count, batch)]
    program = ev.Program.parse(f"{_RELATIONS} CREATE MATERIALIZED VIEW v AS {_VIEWS[view]};")
    found = _Round()
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.db" for name in ("site", "counting", "derived")}
        with (
            ev.Site.open(paths["site"], program) as site,
            ev.Site.open(":memory:", program) as feeder,  # a site with a peer keeps an index more
            ev.Site.open(paths["derived"], program, hosts={"v"}) as derived,
        ):
            site.insert("r2", r2)
            feeder.insert("r2", r2)
            counting = Counting(paths["counting"], view, r2)
            writers: list[tuple[str, Callable[[Sequence[Row]], int], Callable[[Sequence[Row]], int]]] = [
                ("site", lambda part: site.insert("r1", part), lambda part: site.delete("r1", part)),
                ("counting", counting.insert, counting.delete),
            ]
            turn = writers[::-1] if first else writers
            gc.collect()
            _receive(derived, feeder)
            for part in batches:
                for name, insert, _ in turn:
                    start = time.process_time()
                    found.insert[name].append(_timed(insert, part))
                    found.processor += (time.process_time() - start) if name == "site" else 0.0
                feeder.insert("r1", part)
                found.insert["derived"].append(_receive(derived, feeder))
            found.view_tuples = _check(site, counting)
            _check(derived, counting)
            found.bytes = {name: _vacuumed(path) for name, path in paths.items()}
            gc.collect()
            for part in batches:
                for name, _, delete in turn:
                    found.delete[name].append(_timed(delete, part))
                feeder.delete("r1", part)
                found.delete["derived"].append(_receive(derived, feeder))
            if _check(site, counting) + _check(derived, counting) != 0:
                raise AssertionError("rows are left in the view after all were deleted")
            counting.connection.close()
    return found


def _timed(write: Callable[[Sequence[Row]], int], rows: Sequence[Row]) -> float:
    start = time.perf_counter()
    count = write(rows)
    taken = time.perf_counter() - start
    if count != len(rows):
        raise AssertionError(f"{count} of {len(rows)} rows were written")
    return taken


def _receive(reader: ev.Site, sender: ev.Site) -> float:
    """Bring a site up to date with another; return the seconds that it took the reader."""
    taken = 0.0
    exchange = reader.replica.exchange("sender")
    start = time.perf_counter()
    message: bytes | None = exchange.open()
    while message is not None:
        taken += time.perf_counter() - start
        answer = sender.replica.answer(message)
        start = time.perf_counter()
        message = exchange.receive(answer)
    return taken + time.perf_counter() - start


def _check(site: ev.Site, counting: Counting) -> int:
    """Return how many rows the view has, which must be the same ones in both."""
    ours = site.rows("v")
    columns = ", ".join(column.name for column in site.program.schema("v"))
    if ours != counting.connection.execute(f"SELECT {columns} FROM v ORDER BY {columns}").fetchall():
        raise AssertionError("the two views differ")
    return len(ours)


def _vacuumed(path: Path) -> int:
    """Return the size of the file if it were vacuumed, without doing so: that would change what follows."""
    packed = path.with_suffix(".packed")
    connection = sqlite3.connect(path)
    connection.execute("VACUUM INTO ?", (str(packed),))
    connection.close()
    return packed.stat().st_size


def _seconds(taken: Sequence[dict[str, list[float]]], who: str, batches: int) -> float:
    return statistics.median(sum(one[who][:batches]) for one in taken)


def _ratio(taken: Sequence[dict[str, list[float]]], batches: int, who: str = "site") -> float:
    return statistics.median(sum(one[who][:batches]) / sum(one["counting"][:batches]) for one in taken)


def _draw(view: str, rounds: Sequence[_Round], sizes: list[int]) -> None:
    panels = []
    for title, taken in (("inserts", [r.insert for r in rounds]), ("deletes", [r.delete for r in rounds])):
        lines = {
            name: [_seconds(taken, who, count) for count in range(1, len(sizes) + 1)]
            for who, name in (("site", "Everview"), ("counting", "counting"))
        }
        x = [size / 1000 for size in sizes]
        panels.append(Panel(f"{view}: {title}", "rows of R1 (thousands)", "seconds", x, lines))
    (_DOCS / f"benchmark-{view}.svg").write_text(svg(panels))
