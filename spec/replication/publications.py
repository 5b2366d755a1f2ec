"""A relation that only its owner writes shows a state that the owner had, never a mixture.

So the results of a view that one authority computes travel, and the partial aggregates of owners.
A row has an item, its weight or state, and an epoch. Each refresh removes and adds rows in one commit.
Of each owner the rows of the greatest epoch are shown.

An epoch belongs to one incarnation: it is a number and the incarnation that began it.
It begins with all rows of the state and a mark, lest an empty state show the rows of an older epoch.
An owner that was put back begins an epoch greater than any that it has met.
If it meets a greater one of its past later, it begins another one.
It removes older rows as it meets them.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from spec.replication.kinds import Change, Kind
from spec.replication.rows import Key, Row, Rows
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.transactions import Transaction, Written
from spec.replication.vectors import Dot

State: TypeAlias = Mapping[Any, Hashable]


class Epoch(NamedTuple):
    """A number and who began it; epochs are ordered by both."""

    number: int
    incarnation: str


class Entry(NamedTuple):
    """One item of a state; the mark of an epoch has no item."""

    epoch: Epoch
    item: Any
    weight: Any


@dataclass(frozen=True, slots=True)
class Published(Kind):
    """Rows of owners; the key is the owner."""

    def insert(self, group: Rows, key: Key, value: Hashable, now: int) -> Change | None:
        """Refuse single rows: an owner publishes whole states."""
        raise NotImplementedError

    def winners(self, group: Rows) -> frozenset[Dot]:
        """Return the rows of the greatest epoch."""
        if not group:
            return frozenset()
        newest = max(_entry(row).epoch for row in group.values())
        return frozenset(dot for dot, row in group.items() if _entry(row).epoch == newest)

    def shown(self, group: Rows) -> tuple[Hashable, ...]:
        """Return owner, item and weight, for each item of the state."""
        entries = [(row.key, _entry(row)) for row in (group[dot] for dot in self.winners(group))]
        found = [(owner, entry.item, entry.weight) for owner, entry in entries if entry.item is not None]
        return tuple(sorted(found, key=repr))


def published(store: Store, name: str, owner: Key, state: State) -> tuple[Store, list[Written]]:
    """Return the store after a refresh by the owner, in one commit; nothing is written if nothing changes."""
    group = store.relations[name].group(owner)
    known = max((_entry(row).epoch for row in group.values()), default=Epoch(0, ""))
    mine = known.incarnation == store.incarnation or not holds(Rule.EPOCHS)
    epoch = known if mine and known.number else Epoch(known.number + 1, store.incarnation)
    wanted = {Entry(epoch, item, weight) for item, weight in state.items()}
    if holds(Rule.MARKED):
        wanted.add(Entry(epoch, None, 0))
    present = {_entry(row): dot for dot, row in group.items()}
    transaction = Transaction(store)
    for entry, dot in sorted(present.items(), key=repr):
        if entry not in wanted:
            transaction.change(name, Change(frozenset({dot})))
    for entry in sorted(wanted - present.keys(), key=repr):
        transaction.change(name, Change(frozenset(), Row(owner, entry)))
    return transaction.committed(), transaction.written


def _entry(row: Row) -> Entry:
    if not isinstance(row.value, Entry):
        raise TypeError
    return row.value
