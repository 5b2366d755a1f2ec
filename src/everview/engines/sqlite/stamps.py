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


class StampClock:
    """Mints stamps that are above every stamp it minted or observed."""

    def __init__(self, now_us: Callable[[], int], last: int = 0) -> None:
        self._now_us = now_us
        self.last = last

    def stamp(self) -> int:
        """Mint the next stamp."""
        self.last = max(self.last + 1, self._now_us() << SHIFT)
        return self.last

    def observe(self, stamp: int) -> None:
        """Be above this stamp from now on."""
        self.last = max(self.last, stamp)


def microseconds(stamp: int) -> int:
    """Return the time of a stamp."""
    return stamp >> SHIFT
