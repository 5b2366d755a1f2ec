"""What the declared semantics say of a set of writes: no tables, no messages, only who had seen what.

- set: an insertion's causal length is one more than the greatest among the writes it had seen, or above the
  floor where the tuple had been forgotten; a deletion's too; the longest chain wins, and that is one of the
  latest writes, those that no other had seen.
- keyed: the write with the greatest stamp; of equal stamps the greater incarnation's. While the time of one
  of a key's writes has not come, the key shows one of the others, or no row.
- bag: the sum of all weights.
- add-wins: an insertion lives unless some deletion had seen it.

What is promised of sites that lose their file: a write survives if its site keeps its file, or if anyone who
keeps theirs has seen it. A returning site may tell a row again, above the floor or under a new stamp: that is
one more write of its own, which has seen all that the site has seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from everview.language.program import Program
from everview.language.relations import Semantics

Row = tuple[Any, ...]
Numbers = frozenset[int]
Contents = dict[str, Counter[Row]]
"""Relation or view → rows."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One write: what it did to which row, and the writes to the relation that its site had seen before."""

    number: int
    relation: str
    action: str
    row: Row
    seen: Numbers
    weight: int = 1
    length: int = 0
    """Of a set: the tuple's causal length after it."""
    stamp: int = 0
    """Of a keyed relation; `incarnation` breaks ties."""
    incarnation: str = ""


@dataclass(slots=True)
class History:
    """Every write that took effect anywhere, in the order of the run."""

    program: Program
    views: Callable[[Contents], Contents] | None = None
    """What the views are, given the relations; if it is not said, what the reference makes of them."""
    events: list[Event] = field(default_factory=list)
    evaluated: tuple[Contents, Contents] | None = field(default=None, repr=False)
    """What the views were last made of, and what they were."""
    looked_into: set[Numbers] = field(default_factory=set, repr=False)
    """Writes to a set whose outcome was found to be one of the latest."""
    published: dict[str, dict[tuple[int, int], list[Counter[Row]]]] = field(default_factory=dict)
    """View → epoch and mark → what its authority showed then: one state, unless it went back unnoticed."""
    forgotten: dict[tuple[str, Row], set[Numbers]] = field(default_factory=dict)
    """Relation and key → the writes that a site had seen when it had forgotten the key."""

    _known: dict[Numbers, tuple[dict[Row, int], set[Row]]] = field(default_factory=dict, repr=False)

    def record(self, event: Event) -> None:
        """Take note of the next write."""
        self.events.append(event)

    def key(self, relation: str, row: Row) -> Row:
        """What the fate of a row depends on: a keyed row's key, or the row."""
        declared = self.program.relations[relation]
        if declared.semantics is not Semantics.KEYED:
            return row
        return tuple(row[place] for place in declared.key_positions)

    def contents(self, relation: str, numbers: Numbers) -> Counter[Row]:
        """The rows that these writes make, when the time of all of them has come."""
        if self.program.relations[relation].semantics is Semantics.SET:
            return Counter([row for row, length in self.longest(numbers).items() if length % 2])
        by_key: defaultdict[Row, list[Event]] = defaultdict(list)
        declared = self.program.relations[relation]
        for number in numbers:
            event = self.events[number]
            by_key[self.key(relation, event.row)].append(event)
        found: Counter[Row] = Counter()
        for events in by_key.values():
            found.update(_ROWS[declared.semantics](events))
        return found

    def waiting(self, relation: str, numbers: Iterable[int], come: Collection[int]) -> set[Row]:
        """The keys of a keyed relation that have a version whose time has not come.

        Until then such a key shows an earlier version or none: whom the later version reached first never
        gets the earlier one.
        """
        if self.program.relations[relation].semantics is not Semantics.KEYED:
            return set()
        return {self.key(relation, self.events[number].row) for number in numbers if number not in come}

    def unsettled(self, relation: str, numbers: Numbers) -> set[Row]:
        """The keys of which a deletion was forgotten that another of these writes had not seen.

        Until a write has seen all of them, either may have won.
        """
        found = set()
        for (name, key), sets in self.forgotten.items() if self.forgotten else ():
            if name != relation:
                continue
            events = [e for e in map(self.events.__getitem__, numbers) if self.key(name, e.row) == key]
            all_ = {e.number for e in events}
            apart = any(e.number not in seen and not seen & all_ <= e.seen for seen in sets for e in events)
            if apart and not any(all_ <= {*e.seen, e.number} for e in events):
                found.add(key)
        return found

    def latest(self, numbers: Numbers) -> Iterator[tuple[Row, set[str]]]:
        """Tuples, and the actions of those writes to each that no other of them had seen: one of these wins.

        Of most rows there is one write, and nothing to be compared.
        """
        first: dict[Row, Event] = {}
        several: dict[Row, list[Event]] = {}
        for number in numbers:
            event = self.events[number]
            other = first.setdefault(event.row, event)
            if other is not event:
                several.setdefault(event.row, [other]).append(event)
        for row, event in first.items():
            yield row, _unseen(several[row]) if row in several else _ALONE[event.action]

    def longest(self, numbers: Numbers) -> dict[Row, int]:
        """Of a set: tuple → the greatest causal length among these writes."""
        return self._lengths(numbers)[0]

    def marks(self, numbers: Numbers) -> set[Row]:
        """The same, as rows that end with their lengths: compared with a store's at once."""
        return self._lengths(numbers)[1]

    def _lengths(self, numbers: Numbers) -> tuple[dict[Row, int], set[Row]]:
        """Made once for what a site has seen, from what another had that saw less, and remembered a while."""
        found = self._known.get(numbers)
        if found is None:
            fewer = max((known for known in self._known if known <= numbers), key=len, default=frozenset())
            before, told = self._known.get(fewer, ({}, set()))
            longest, marks = before.copy(), told.copy()
            for number in numbers - fewer:
                event = self.events[number]
                length = longest.get(event.row, 0)
                if event.length > length:
                    longest[event.row] = event.length
                    marks.discard((*event.row, length))
                    marks.add((*event.row, event.length))
            while len(self._known) > 8:
                del self._known[next(iter(self._known))]
            found = self._known[numbers] = (longest, marks)
        return found


_ALONE = {"insert": {"insert"}, "delete": {"delete"}}


def _unseen(events: list[Event]) -> set[str]:
    return {e.action for e in events if not any(e.number in other.seen for other in events)}


def _keyed(events: list[Event]) -> Counter[Row]:
    last = max(events, key=lambda e: (e.stamp, e.incarnation))
    return Counter([last.row]) if last.action == "insert" else Counter()


def _bag(events: list[Event]) -> Counter[Row]:
    total = sum(e.weight if e.action == "insert" else -e.weight for e in events)
    return Counter({events[0].row: total}) if total > 0 else Counter()


def _add_wins(events: list[Event]) -> Counter[Row]:
    deletions = [e for e in events if e.action == "delete"]
    lives = any(
        e.action == "insert" and not any(e.number in deletion.seen for deletion in deletions) for e in events
    )
    return Counter([events[0].row]) if lives else Counter()


_ROWS = {
    Semantics.KEYED: _keyed,
    Semantics.BAG: _bag,
    Semantics.ADD_WINS: _add_wins,
}
