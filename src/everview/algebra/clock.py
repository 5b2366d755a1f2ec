"""Hybrid logical clocks: stamps that follow causality and stay close to the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everview.algebra import checks
from everview.errors import DataError

TOLERANCE_US = 60_000_000
"""How far another site's stamp may lie ahead of this clock and still be taken at its word."""


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """A point in time, unique to one transaction of one incarnation; ordered field by field.

    `time_us` is microseconds since 1970 (UTC), `counter` tells apart the stamps of one microsecond, and
    the incarnation breaks the remaining ties in the same way everywhere.
    """

    time_us: int
    counter: int
    incarnation: str

    def __post_init__(self) -> None:
        checks.integer(self.time_us, "a stamp's time")
        checks.natural(self.counter, "a stamp's counter")
        checks.name(self.incarnation, "a stamp's incarnation")

    def __str__(self) -> str:
        return f"{self.time_us}.{self.counter}@{self.incarnation}"


class HybridClock:
    """Mints stamps that are above every stamp it has minted or observed.

    Intuitively, a write made after seeing another is stamped later, even where this machine's clock runs
    behind. A stamp from further ahead than the tolerance does not drag this clock along: it waits for
    its time, so one broken clock cannot win for ever.
    """

    def __init__(
        self, incarnation: str, physical_us: Callable[[], int], *, tolerance_us: int = TOLERANCE_US
    ) -> None:
        self._physical_us = physical_us
        self._tolerance_us = checks.natural(tolerance_us, "the tolerance")
        self._last = Stamp(0, 0, incarnation)

    def stamp(self) -> Stamp:
        """Mint the next stamp."""
        now = checks.integer(self._physical_us(), "the physical clock")
        last = self._last
        if now > last.time_us:
            self._last = Stamp(now, 0, last.incarnation)
        else:
            self._last = Stamp(last.time_us, last.counter + 1, last.incarnation)
        return self._last

    def observe(self, stamp: Stamp) -> bool:
        """Take note of a stamp that arrived; say whether its time has come.

        False means that it lies further ahead than the tolerance: store it, do not value it yet.
        """
        if not isinstance(stamp, Stamp):
            raise DataError(f"not a stamp: {stamp!r}", value=stamp, expected="Stamp")
        if stamp.time_us > self._physical_us() + self._tolerance_us:
            return False
        if (stamp.time_us, stamp.counter) > (self._last.time_us, self._last.counter):
            self._last = Stamp(stamp.time_us, stamp.counter, self._last.incarnation)
        return True
