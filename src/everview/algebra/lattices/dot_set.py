"""DotSet: which updates are known, as runs of consecutive numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from everview.algebra import checks
from everview.algebra.laws import Lattice
from everview.errors import DataError

Dot = tuple[str, int]
Run = tuple[int, int]


class DotSet:
    """A set of dots (origin, number ≥ 1), stored per origin as sorted, disjoint, non-adjacent runs.

    Intuitively, an origin numbers its updates 1, 2, 3, …, so what is known of it is nearly always one
    run from 1: a million dots are one pair of numbers (Rings §3.2).
    """

    __slots__ = ("_runs",)

    def __init__(self, dots: Iterable[Dot] = ()) -> None:
        numbers: dict[str, list[Run]] = {}
        for origin, number in dots:
            checks.positive(number, "a dot's number")
            numbers.setdefault(checks.name(origin, "a dot's origin"), []).append((number, number))
        self._runs = {origin: _coalesce(sorted(runs)) for origin, runs in numbers.items()}

    @classmethod
    def from_runs(cls, runs: Mapping[str, Iterable[Run]]) -> DotSet:
        """Build from runs (first, last), in any order, overlapping or not."""
        made = cls()
        for origin, given in runs.items():
            checks.name(origin, "a dot's origin")
            ordered = sorted(given)
            for first, last in ordered:
                if checks.positive(first, "a run's first number") > checks.positive(
                    last, "a run's last number"
                ):
                    raise DataError(f"the run {first}–{last} of {origin!r} ends before it begins")
            if ordered:
                made._runs[origin] = _coalesce(ordered)
        return made

    @property
    def runs(self) -> Mapping[str, tuple[Run, ...]]:
        """Origin → its runs (first, last)."""
        return self._runs

    def __contains__(self, dot: Dot) -> bool:
        origin, number = dot
        runs = self._runs.get(origin, ())
        at = bisect_right(runs, (number, _INFINITY)) - 1
        return at >= 0 and runs[at][0] <= number <= runs[at][1]

    def __len__(self) -> int:
        return sum(last - first + 1 for runs in self._runs.values() for first, last in runs)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __iter__(self) -> Iterator[Dot]:
        for origin in sorted(self._runs):
            for first, last in self._runs[origin]:
                yield from ((origin, number) for number in range(first, last + 1))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DotSet) and self._runs == other._runs

    def __hash__(self) -> int:
        return hash(frozenset(self._runs.items()))

    def __or__(self, other: DotSet) -> DotSet:
        """Return the union."""
        union = DotSet()
        union._runs = {
            origin: _coalesce(sorted((*self._runs.get(origin, ()), *other._runs.get(origin, ()))))
            for origin in self._runs.keys() | other._runs.keys()
        }
        return union

    def __le__(self, other: DotSet) -> bool:
        """Say whether every dot here is there; each run must lie in one run, because runs never touch."""
        for origin, runs in self._runs.items():
            theirs = other._runs.get(origin, ())
            for first, last in runs:
                at = bisect_right(theirs, (first, _INFINITY)) - 1
                if at < 0 or theirs[at][1] < last:
                    return False
        return True

    def prefix(self, origin: str) -> int:
        """Return the greatest n such that the dots 1 … n of `origin` are all known."""
        runs = self._runs.get(origin, ())
        return runs[0][1] if runs and runs[0][0] == 1 else 0

    def __repr__(self) -> str:
        shown = (
            f"{origin}: " + ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)
            for origin, runs in sorted(self._runs.items())
        )
        return "DotSet(" + "; ".join(shown) + ")"


_INFINITY = float("inf")


def _coalesce(ordered: Iterable[Run]) -> tuple[Run, ...]:
    merged: list[Run] = []
    for first, last in ordered:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


@dataclass(frozen=True, slots=True)
class Dots(Lattice[DotSet]):
    """Dot sets, joined by union."""

    def bottom(self) -> DotSet:
        """Return the empty set."""
        return DotSet()

    def join(self, a: DotSet, b: DotSet, /) -> DotSet:
        """Return a | b."""
        return a | b

    def leq(self, a: DotSet, b: DotSet, /) -> bool:
        """Return a ⊆ b."""
        return a <= b
