"""Which refreshes are retained: the last few that are young enough, and always the latest.

A record is written once, and so are the runs it names: to read the hub as it was, it is enough that both are
still there. What is retained is decided by number and age alone, whether or not a vacuum has been by; so
a refresh that can be read is not gone a moment later.
"""

from __future__ import annotations

import time
from bisect import bisect_left
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

    def __post_init__(self) -> None:
        if self.refreshes < 1:
            raise DataError(f"retain_refreshes is {self.refreshes}: the latest one is always retained")
        if not self.days >= 0:
            raise DataError(f"retain_days is {self.days}: it cannot be less than 0")

    def retained(self, files: Files) -> list[int]:
        """The numbers of the retained refreshes, least first; none before the first refresh."""
        numbers = refreshes(files)[-self.refreshes :]
        oldest = now_us() - self.days * _DAY_US
        # Later refreshes were made later, so a few records tell for all.
        first = bisect_left(numbers, oldest, key=lambda number: read(files, number).made_us)
        return numbers[min(first, len(numbers) - 1) :] if numbers else []
