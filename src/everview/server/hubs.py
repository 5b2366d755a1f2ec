"""A hub behind a server: how it is, what it counts, and when it can take no more.

What sites push is in the gate when they are answered; a refresh takes it from there. If they push faster
than refreshes take in, the gate grows, and so does the time until their rows are in views. From a limit on,
counted in rows, pushes are refused with the time after which to come again; who only pulls is answered as
ever.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from everview.server.metrics import Counter, Family, Histogram, gauge
from everview.server.pipeline import Pipeline
from everview.server.service import SiteService

if TYPE_CHECKING:
    from everview.hub import Hub, RefreshReport

__all__ = ["BACKLOG_ROWS", "HubService"]

BACKLOG_ROWS = 2_000_000
"""How many rows may wait for a refresh before pushes are refused."""

LOOK_SECONDS = 0.5
"""How often it is looked how many there are."""

LONGEST_WAIT = 10.0

REMEMBERED = 200
"""How many refreshes are remembered, for the console."""

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

log = logging.getLogger("everview.hub")


class HubService(SiteService):
    """A hub that runs and is served; `on_lost` is called when another hub has taken its store over."""

    def __init__(
        self, hub: Hub, trigger: str, on_lost: Callable[[], None], *, backlog_rows: int = BACKLOG_ROWS
    ) -> None:
        super().__init__(hub.replica)
        self._hub = hub
        self._limit = backlog_rows
        self._rows = 0
        self._stopping = threading.Event()
        self._looker = threading.Thread(target=self._look, name="everview-backlog", daemon=True)
        self.pipeline = Pipeline(hub, trigger, self._refreshed, on_lost)
        self._stages = Histogram(
            "everview_refresh_stage_seconds", "How long the parts of refreshes took.", _SECONDS
        )
        self._refreshes = Counter("everview_refreshes_total", "Refreshes since the start.")
        self._grown = Counter("everview_rows_grown_total", "Rows that appeared or disappeared in refreshes.")
        self.refreshes: deque[tuple[float, RefreshReport]] = deque(maxlen=REMEMBERED)
        """The last refreshes that took something in, each with when it ended, in seconds since 1970."""
        self._rejected = Counter("everview_rejected_writes_total", "Writes that were set aside.")

    def start(self) -> None:
        """Have the hub run, and watch what waits."""
        self._looker.start()
        self.pipeline.start()

    def stop(self) -> None:
        """End both, after the refresh that is under way."""
        self._stopping.set()
        self.pipeline.stop()
        if self._looker.ident is not None:
            self._looker.join()

    # What waits.

    def pressure(self) -> float | None:
        """Seconds after which to push again; the more there is, the later."""
        if self._rows <= self._limit:
            return None
        return min(1.0 + 4.0 * (self._rows / self._limit - 1.0), LONGEST_WAIT)

    def _look(self) -> None:
        head, refresh = -1, -1
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                now = self._replica.head, self._hub.refreshed
                if now != (head, refresh):
                    self._rows = self._hub.status(most=4 * self._limit).waiting.rows
                    head, refresh = now
            except Exception as error:  # noqa: BLE001 - it may pass, and pushes are not refused for ever
                self._rows = 0
                log.warning("cannot look for what waits: %s", error)

    # What is told.

    def _refreshed(self, report: RefreshReport) -> None:
        appeared = sum(change.appeared for change in report.changes.values())
        disappeared = sum(change.disappeared for change in report.changes.values())
        self._refreshes.add()
        if (
            report.arrivals or report.rejected or report.changes
        ):  # a run begins with one that has none of these
            self.refreshes.append((time.time(), report))
        for name, change in report.changes.items():
            self._grown.add(change.appeared + change.disappeared, table=name)
        for stage, seconds in report.stages.items():
            self._stages.observe(seconds, stage=stage)
        self._rejected.add(len(report.rejected))
        taken = sum(report.stages.values())
        for rejected in report.rejected:
            log.warning("%s is set aside: %s", rejected.name, rejected.reason)
        log.info(
            "refresh %d: %s, %d rows appeared, %d disappeared, %s, %.2f s",
            report.refresh,
            _counted(report.arrivals, "arrival"),
            appeared,
            disappeared,
            _counted(report.jobs, "job"),
            taken,
            extra={
                "event": "refresh",
                "fields": {
                    "refresh": report.refresh,
                    "arrivals": report.arrivals,
                    "appeared": appeared,
                    "disappeared": disappeared,
                    "jobs": report.jobs,
                    "seconds": round(taken, 4),
                    "stages": {stage: round(seconds, 4) for stage, seconds in report.stages.items()},
                },
            },
        )

    def health(self) -> tuple[bool, dict[str, Any], dict[str, Any]]:
        """Not well while the pipeline has ended with an error."""
        status = self._hub.status(most=4 * self._limit)
        error = self.pipeline.error
        told = {
            "refresh": status.refresh,
            "age_seconds": round(time.time() - status.refreshed_us / 1e6, 3) if status.refresh else None,
            "running": self.pipeline.is_running,
        }
        inside = {
            "waiting_writes": status.waiting.writes,
            "waiting_commits": status.waiting.commits,
            "waiting_rows": status.waiting.rows,
            "error": None if error is None else " ".join(str(error).split()),
        }
        return error is None, told, inside

    def families(self) -> Iterator[Family]:
        """All metrics, as they are now."""
        yield from super().families()
        status = self._hub.status(most=4 * self._limit)
        waits = status.waiting
        yield gauge("everview_pipeline_running", "1 while it runs.", (self.pipeline.is_running, {}))
        yield Family(
            "everview_pipeline_failures_total",
            "counter",
            "How often the pipeline has ended with an error.",
            [("", (), self.pipeline.failures)],
        )
        yield gauge("everview_refresh", "The number of the last refresh.", (status.refresh, {}))
        age = time.time() - status.refreshed_us / 1e6
        yield gauge(
            "everview_refresh_age_seconds",
            "How long ago it was made.",
            *(((max(age, 0.0), {}),) if status.refresh else ()),
        )
        yield gauge("everview_inbox_writes", "The hub's own writes that wait.", (waits.writes, {}))
        yield gauge("everview_inbox_commits", "Commits of devices that wait.", (waits.commits, {}))
        yield gauge("everview_inbox_rows", "Rows of devices that wait.", (waits.rows, {}))
        yield gauge("everview_files", "Files that the last refresh names.", (status.files, {}))
        yield gauge("everview_bytes", "Bytes in these.", (status.bytes, {}))
        yield gauge("everview_rows", "Rows in these.", (status.rows, {}))
        yield self._refreshes.family()
        yield self._stages.family()
        yield self._grown.family()
        yield self._rejected.family()


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
