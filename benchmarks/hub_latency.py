"""From `hub.insert` to a view that shows it, while a hub runs: `python -m benchmarks.hub_latency [ROWS]`.

Not one of the benchmarks of `make bench`: it has nothing to compare with but a refresh by hand, which is
timed before and after. The floor is what a trigger with something to do takes beside the refresh: Spark asks
for offsets, plans the batch, and writes its checkpoint before and after.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import everview as ev
from everview.engines.spark.session import start_session
from everview.hub import Hub, RefreshReport, Running

_PROGRAM = ev.Program.parse("""
CREATE TABLE visit (id BIGINT, place BIGINT);
CREATE MATERIALIZED VIEW per_place AS SELECT place, count(*) AS n FROM visit GROUP BY place;
""")
_WARM = 5
_TIMED = 21
_TRIGGERS = ("0 seconds", "1 second")


def main(rows: int) -> None:
    """Print the medians."""
    with (
        tempfile.TemporaryDirectory(prefix="everview-bench-") as folder,
        Hub.open(folder, _PROGRAM) as hub,
    ):
        hub.insert("visit", start_session().range(rows).selectExpr("id", "id % 1000 AS place"))
        hub.refresh()
        given = iter(range(rows, rows + 10_000))

        def by_hand() -> None:
            hub.insert("visit", [(next(given), 7)])
            hub.refresh()

        _print("insert and refresh by hand", _times(by_hand))
        for trigger in _TRIGGERS:
            started = time.perf_counter()
            with hub.run(trigger) as run:
                _await_another(run, None)
                print(f"{trigger}: runs after {time.perf_counter() - started:.2f} s")

                def visible(run: Running = run) -> None:
                    last = run.last_report
                    hub.insert("visit", [(next(given), 7)])
                    _await_another(run, last)

                _print(f"{trigger}: insert to visible", _times(visible))
                _print(f"{trigger}: a trigger beside its refresh", _floor(run))
        _print("insert and refresh by hand, again", _times(by_hand))


def _await_another(run: Running, last: RefreshReport | None) -> None:
    while run.last_report is last:
        time.sleep(0.001)


def _times(action: Callable[[], None]) -> list[float]:
    taken: list[float] = []
    for _ in range(_WARM + _TIMED):
        # So that nothing of the last one is still under way, and none falls in step with the trigger.
        time.sleep(0.4 + 0.037 * (len(taken) % 7))
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return taken[_WARM:]


def _floor(run: Running) -> list[float]:
    """Of the triggers that had something to do."""
    spent = [dict(progress.durationMs) for progress in run._query.recentProgress]  # noqa: SLF001
    return [(one["triggerExecution"] - one["addBatch"]) / 1000 for one in spent if "addBatch" in one][_WARM:]


def _print(what: str, taken: list[float]) -> None:
    ordered = sorted(taken)
    print(
        f"{what}: median {statistics.median(taken) * 1000:.0f} ms, "
        f"least {ordered[0] * 1000:.0f}, nine in ten below {ordered[len(ordered) * 9 // 10] * 1000:.0f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
