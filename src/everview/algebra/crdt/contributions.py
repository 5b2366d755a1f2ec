"""Contributions: the lattice that makes any aggregate replicable.

Every source numbers its contributions 1, 2, 3, …: a dot. What is known of a source is the total of an
unbroken run from 1, and the contributions that arrived ahead of a gap. Two replicas are joined dot by
dot, so a contribution counts once, whatever is repeated, reordered, or sent over two paths.

This settles what Titan leaves open: its merge-delta is not idempotent, and deltas of one source that
were folded into two primaries lost updates when these were joined (NOTES, Titan 1 and 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.lattices.dot_set import DotSet
from everview.algebra.laws import Lattice
from everview.errors import DataError

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Delta(Generic[C]):
    """One contribution under its dot, as it travels."""

    source: str
    number: int
    contribution: C

    def __post_init__(self) -> None:
        checks.name(self.source, "a delta's source")
        checks.positive(self.number, "a delta's number")


@dataclass(frozen=True, slots=True)
class Entry(Generic[C]):
    """What is known of one source: the total of its contributions 1 … `count`, and those beyond a gap."""

    count: int
    total: C
    ahead: Mapping[int, C] = field(default_factory=lambda: MappingProxyType({}))


State = Mapping[str, Entry[C]]


@dataclass(frozen=True, slots=True)
class Contributions(Lattice[State[C]], Generic[C]):
    """Source → entry, ordered by which dots are known.

    A source is one incarnation of one replica and never gives a dot to two contributions. So equal dots
    mean equal totals: bytewise for exact aggregates, within the error bound for sketches.
    """

    aggregate: Aggregate[C, Any]

    def bottom(self) -> State[C]:
        """Return the state that knows of no source."""
        return MappingProxyType({})

    def join(self, a: State[C], b: State[C], /) -> State[C]:
        """Join source by source."""
        joined = dict(a)
        for source, entry in b.items():
            joined[source] = self._join_entries(joined[source], entry) if source in joined else entry
        return MappingProxyType(joined)

    def leq(self, a: State[C], b: State[C], /) -> bool:
        """Say whether every dot of a is known to b."""
        return all(source in b and _covered(entry, b[source]) for source, entry in a.items())

    def single(self, delta: Delta[C]) -> State[C]:
        """Return the state that knows just this delta."""
        if not isinstance(delta, Delta):
            raise DataError(f"not a delta: {delta!r}", value=delta, expected="Delta")
        ahead = {delta.number: delta.contribution}
        return MappingProxyType({delta.source: self._advance(0, self.aggregate.zero(), ahead)})

    def total(self, state: State[C]) -> C:
        """Combine everything known, in the order of sources and numbers."""
        total = self.aggregate.zero()
        for _, entry in sorted(state.items()):
            total = self.aggregate.combine(total, entry.total)
            for _, contribution in sorted(entry.ahead.items()):
                total = self.aggregate.combine(total, contribution)
        return total

    def _join_entries(self, a: Entry[C], b: Entry[C]) -> Entry[C]:
        if _covered(b, a):
            return a
        longer, shorter = (a, b) if a.count >= b.count else (b, a)
        ahead = {
            number: contribution
            for number, contribution in {**shorter.ahead, **longer.ahead}.items()
            if number > longer.count
        }
        return self._advance(longer.count, longer.total, ahead)

    def _advance(self, count: int, total: C, ahead: dict[int, C]) -> Entry[C]:
        while count + 1 in ahead:
            count += 1
            total = self.aggregate.combine(total, ahead.pop(count))
        return Entry(count, total, MappingProxyType(ahead))


def dots(state: State[Any]) -> DotSet:
    """Return the dots that a state knows."""
    runs = {
        source: [*([(1, entry.count)] if entry.count else []), *((n, n) for n in entry.ahead)]
        for source, entry in state.items()
    }
    return DotSet.from_runs(runs)


def _covered(entry: Entry[Any], by: Entry[Any]) -> bool:
    if entry.count > by.count:
        missing = range(by.count + 1, entry.count + 1)
        if len(missing) > len(by.ahead) or not all(number in by.ahead for number in missing):
            return False
    return all(number <= by.count or number in by.ahead for number in entry.ahead)
