"""Which refreshes are retained: the last few that are young enough, and always the latest.

A record is written once, and so are the runs it names: to read the hub as it was, it is enough that both are
still there. What is retained is decided by number and age alone, whether or not a vacuum has been by; so
a refresh that can be read is not gone a moment later.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from everview.errors import DataError
from everview.hub.files import Files
from everview.hub.record import read, refreshes

__all__ = ["Retention", "now_us"]

_DAY_US = 24 * 60 * 60 * 1_000_000


def now_us() -> int:
    """The time, in microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Retention:
    """At most so many refreshes, none older than so many days; the latest is retained in any case."""

    refreshes: int = 100
    days: float = 7
    consumer_days: float = 7
    """How long what a consumer has not read is kept for it after its last sign (see `consumers`)."""

    def __post_init__(self) -> None:
        if self.refreshes < 1:
            raise DataError(f"retain_refreshes is {self.refreshes}: the latest one is always retained")
        if not self.days >= 0:
            raise DataError(f"retain_days is {self.days}: it cannot be less than 0")
        if not self.consumer_days >= 0:
            raise DataError(f"consumer_days is {self.consumer_days}: it cannot be less than 0")

    def retained(self, files: Files) -> dict[int, int]:
        """The retained refreshes, the latest first, and the record of each; none before the first refresh.

        An opening makes one more record of the refresh before it; the last one is the refresh's.
        """
        oldest = now_us() - self.days * _DAY_US
        found: dict[int, int] = {}
        for number in reversed(refreshes(files)):
            record = read(files, number)
            if not record.refresh or (found and record.made_us < oldest):
                break
            if record.refresh not in found and len(found) == self.refreshes:
                break
            found.setdefault(record.refresh, number)
        return found
