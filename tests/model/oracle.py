"""What the declared semantics say of a set of writes: no tables, no messages, only who had seen what.

- set: an insertion's causal length is one more than the greatest even length among the writes it had seen (or
  the floor, where the tuple had been forgotten), a deletion's one more than the greatest odd one; the longest
  chain wins.
- keyed: the write with the greatest stamp whose time has come.
- bag: the sum of all weights.
- add-wins: an insertion lives unless some deletion had seen it.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    number: int
    relation: str
    operation: str
    row: tuple
    seen: frozenset
    stamp: Any
    length: int


class History:
    """Every write that was acknowledged, in the order of the run."""

    def __init__(self):
        self.events = []
        self.loose = set()  # (relation, tuple or key): forgotten by a site that then came to another group

    def record(self, site, relation, operation, row, stamp, floor, length=None):
        seen = frozenset(site.seen[relation])
        lengths = [self.events[e].length for e in seen if self.events[e].row == row]
        if length is None:
            length = max([floor, *lengths]) if relation == "R" else 0
            length += relation == "R" and length % 2 == (operation == "delete")
        event = Event(len(self.events), relation, operation, row, seen, stamp, length)
        self.events.append(event)
        site.seen[relation].add(event.number)

    def relation(self, name, numbers, valued):
        """The plain relation that these writes make."""
        events = [self.events[n] for n in numbers]
        return getattr(self, f"_{name}")(events, valued)

    def _R(self, events, valued):  # noqa: N802 — the relation's name
        longest = {}
        for e in events:
            longest[e.row] = max(e.length, longest.get(e.row, 0))
        return Counter({row: 1 for row, length in longest.items() if length % 2})

    def _K(self, events, valued):  # noqa: N802
        last = {}
        for e in events:
            before = last.get(e.row[0], e)
            if valued(e.stamp) and (e.stamp, e.number) >= (before.stamp, before.number):
                last[e.row[0]] = e
        return Counter(e.row for e in last.values() if e.operation == "insert")

    def _B(self, events, valued):  # noqa: N802
        sums = Counter()
        for e in events:
            sums[e.row] += 1 if e.operation == "insert" else -1
        return +sums

    def _W(self, events, valued):  # noqa: N802
        removed = {(i, e.row) for e in events if e.operation == "delete" for i in e.seen}
        inserted = [e for e in events if e.operation == "insert"]
        return Counter({e.row: 1 for e in inserted if (e.number, e.row) not in removed})

    def latest(self, numbers, name):
        """Of a tuple's or key's writes those that no other of them had seen: the winner is one of these."""
        events = [e for e in map(self.events.__getitem__, numbers) if name == self.name(e.relation, e.row)]
        overtaken = set().union(*(e.seen for e in events)) if events else set()
        return [e for e in events if e.number not in overtaken]

    def name(self, relation, row):
        """What is written: a tuple, or the key of a keyed one."""
        return row[0] if relation == "K" else row

    def forget(self, relation, numbers, held):
        """A site that has forgotten these writes comes to a group that never saw them.

        What that group has of the same tuple or key may be shorter or older, and lives: of the writes that
        had not seen each other, which one wins is then left open, but not that it is the same everywhere.
        """
        names = {self.name(relation, self.events[n].row) for n in numbers}
        self.loose |= {(relation, name) for name in names - held}

    def unsettled(self, relation, numbers, valued):
        """Names of which one cannot say from the writes alone what they are at a site: loose ones, and keys
        with a version ahead of the site's clock, for which the sender may have dropped the one before.
        """
        ahead = {
            e.row[0] for e in map(self.events.__getitem__, numbers) if relation == "K" and not valued(e.stamp)
        }
        return ahead | {name for where, name in self.loose if where == relation}
