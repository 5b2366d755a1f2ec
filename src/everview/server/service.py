"""What a server has behind it, beside the replica: how it is, what it counts, and whether it bears more.

A site has little to say. A hub's service is `hubs.HubService`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from everview.server.metrics import Counter, Family, Histogram, Labels, gauge

__all__ = ["Member", "Service", "SiteService"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Service:
    """What every server counts. Methods may be called from any thread, and `pressure` often."""

    def __init__(self) -> None:
        self.requests = Counter("everview_requests_total", "Requests by address and status.")
        self.refusals = Counter(
            "everview_refusals_total", "Requests and messages that were refused, by code."
        )
        self.seconds = Histogram("everview_request_seconds", "How long requests took.", SECONDS)
        self.pending = 0
        """Exchanges that are answered or wait for their turn."""

    def answered(self, path: str, status: int, seconds: float, code: str = "") -> None:
        """Take note of a request; `code` says why it was refused."""
        self.requests.add(path=path, status=str(status))
        self.seconds.observe(seconds, path=path)
        if code:
            self.refusals.add(code=code)

    def pressure(self) -> float | None:
        """For how many seconds nothing more can be taken; None when it can."""
        return None

    def health(self) -> tuple[bool, dict[str, Any], dict[str, Any]]:
        """Whether it is well; what anybody with a token may know of it; and what only who watches it may."""
        return True, {}, {}

    def _refused(self) -> dict[Labels, float]:
        """Refusals that are no refused requests, as the samples of a counter."""
        return {}

    def families(self) -> Iterator[Family]:
        """All metrics, as they are now."""
        yield self.requests.family()
        yield self.seconds.family()
        yield self.refusals.family(self._refused())
        yield gauge("everview_exchanges_pending", "Exchanges that are answered or wait.", (self.pending, {}))
        yield from _process()


class Member(Protocol):
    """A replica, as far as it is watched."""

    @property
    def head(self) -> int:
        """The number of the last commit."""

    @property
    def refused(self) -> int:
        """How many messages were answered by a refusal for what they say."""

    def members(self) -> dict[str, Any]:
        """The other sites, and how many rows of this one they have refused."""


class SiteService(Service):
    """A site that is served."""

    def __init__(self, replica: Member) -> None:
        super().__init__()
        self._replica = replica

    def _refused(self) -> dict[Labels, float]:
        # These are answers like any other, with status 200: only the replica knows what is in them.
        count = self._replica.refused
        return {(("code", "refused"),): count} if count else {}

    def families(self) -> Iterator[Family]:
        """All metrics, as they are now."""
        yield from super().families()
        status = self._replica.members()
        there = status["members"]
        names = [{"device": one["name"], "incarnation": one["incarnation"]} for one in there]
        now = time.time()
        yield gauge("everview_commits", "The number of the last commit.", (status["head"], {}))
        yield gauge(
            "everview_device_lag_commits",
            "How many commits a device is known to lack.",
            *((one["lag"], labels) for one, labels in zip(there, names, strict=True)),
        )
        yield gauge(
            "everview_device_heard_seconds",
            "How long ago a device was last heard of.",
            *(
                (max(now - one["heard_us"] / 1e6, 0.0), labels)
                for one, labels in zip(there, names, strict=True)
                if one["heard_us"]
            ),
        )
        yield gauge(
            "everview_refused_rows",
            "Rows written here that other sites have refused.",
            (status["refused"], {}),
        )
        yield gauge(
            "everview_alarms",
            "Partitions that differ from a peer's although both have seen the same.",
            (status["alarms"], {}),
        )


def _process() -> Iterator[Family]:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return
    resident = pages * os.sysconf("SC_PAGE_SIZE")
    yield gauge("process_resident_memory_bytes", "Memory that this process has.", (resident, {}))
    yield Family(
        "process_cpu_seconds_total",
        "counter",
        "Seconds of a core that this process has used.",
        [("", (), time.process_time())],
    )
