"""Quiescence: how places find out that every update has been consumed, without anybody who sees them all.

Places report, round after round, how many updates they have sent, how many they have consumed, and how many
wait. Nobody reports in a round before it has all reports of the round before. If all reports of two rounds
are the same, nothing happened at any place from its first to its second; between the rounds all of them were
at rest at once, and if as much was consumed as was sent, nothing was under way either. One round alone can
be wrong: an update may overtake it (`tests/located/model/test_model.py` has the schedule).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Report", "Rounds"]


class Report(NamedTuple):
    """What a place says of itself in a round."""

    place: str
    round: int
    sent: int
    consumed: int
    waiting: int


@dataclass(frozen=True)
class Rounds:
    """The reports that a place has heard, its own too."""

    places: frozenset[str]
    reports: frozenset[Report]

    @classmethod
    def of(cls, places: Iterable[str], reports: Iterable[Report]) -> Rounds:
        """From rows of reports."""
        return cls(frozenset(places), frozenset(reports))

    def due(self, place: str, *, asked: bool) -> int | None:
        """The round in which a place may report now, if it has to.

        It has to when another has, and when it is `asked` itself and has the last round's reports of all.
        """
        last = max((report.round for report in self.reports), default=0)
        mine = max((report.round for report in self.reports if report.place == place), default=0)
        if mine < last and (last == 1 or self._complete(last - 1)):
            return last
        if asked and mine == last and (last == 0 or self._complete(last)):
            return last + 1
        return None

    def quiet(self, after: int = 0) -> bool:
        """Whether the last two rounds, both later than `after`, say that all is quiet."""
        last = max(
            (number for number in {r.round for r in self.reports} if self._complete(number)), default=0
        )
        if last - 1 <= after or not self._complete(last - 1):
            return False
        now, before = self._said(last), self._said(last - 1)
        sent, consumed, waiting = (sum(column) for column in zip(*now.values(), strict=True))
        return now == before and sent == consumed and not waiting

    def _complete(self, number: int) -> bool:
        return {report.place for report in self.reports if report.round == number} == self.places

    def _said(self, number: int) -> dict[str, tuple[int, int, int]]:
        return {r.place: (r.sent, r.consumed, r.waiting) for r in self.reports if r.round == number}
