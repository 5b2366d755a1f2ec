"""Stamps in a store: hybrid logical time as one integer, microseconds times 1024 plus a counter.

Within one microsecond a counter tells stamps apart, and when it runs over it carries into the time; so the
next stamp is one more, and comparing integers compares stamps. The incarnation that breaks ties is that of
the row's origin.
"""

from __future__ import annotations

from collections.abc import Callable

from everview.algebra.clock import TOLERANCE_US

SHIFT = 10

GREATEST = (1 << 63) - 1 - (TOLERANCE_US << SHIFT)
"""No stamp is above this: one that claims to be is refused, since time could never come to it."""

FARTHEST_US = 90 * 24 * 3600 * 1_000_000
"""How far a clock is moved beyond its own time at most, whoever asks for it."""

AHEAD_US = 10 * TOLERANCE_US
"""What lies ahead by no more is waited for: to begin anew would take longer."""


class StampClock:
    """Mints stamps that are above every stamp it minted or observed."""

    def __init__(self, now_us: Callable[[], int], last: int = 0) -> None:
        self._now_us = now_us
        self.last = last
        self.past = 0
        """A stamp whose time is taken to have come, whatever the time is."""

    def stamp(self) -> int:
        """Mint the next stamp."""
        self.last = max(self.last + 1, self._now_us() << SHIFT)
        return self.last

    def observe(self, stamp: int) -> None:
        """Be above this stamp from now on."""
        self.last = max(self.last, stamp)

    def limit(self) -> int:
        """Return the greatest stamp whose time has come, give or take the tolerance."""
        return max(self.last, max(self.past, self._now_us() << SHIFT) + (TOLERANCE_US << SHIFT))

    def is_ahead(self) -> bool:
        """Whether it has minted, or observed, what by now lies far ahead: the time was set back."""
        return self.last > max(self.past, self._now_us() << SHIFT) + (AHEAD_US << SHIFT)

    def restart(self) -> None:
        """Go by the time of now again, whatever was minted."""
        self.last = 0

    def farthest(self) -> int:
        """Return the greatest stamp to which this clock is moved for others, though its time has not come."""
        return max(self.limit(), (self._now_us() + FARTHEST_US) << SHIFT)


def microseconds(stamp: int) -> int:
    """Return the time of a stamp."""
    return stamp >> SHIFT
