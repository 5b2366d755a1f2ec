"""A kind decides what the live rows of one key show, and what a write replaces.

Nearly always a key has one row. Only writes that have not seen each other leave several.
A stamp decides between such writes only; no clock is moved by another.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, replace

from spec.replication.rows import Key, Row, Rows
from spec.replication.vectors import Dot


@dataclass(frozen=True, slots=True)
class Change:
    """A write to one key: the rows that it removes, and the row that it adds if any."""

    gone: frozenset[Dot]
    row: Row | None = None


class Kind(ABC):
    """The meaning of the rows of a relation; a group is the live rows of one key."""

    named = True
    """Whether derivations may name rows. Otherwise a view's host holds the relation whole."""

    separate = False
    """Whether each row stands for itself, whatever other rows its key has."""

    updates = False
    """Whether an insertion changes what is shown of a key that is there."""

    @abstractmethod
    def insert(self, group: Rows, key: Key, value: Hashable, now: int) -> Change | None:
        """Return how an insertion changes the group that it sees, None if it does not."""

    def delete(self, group: Rows) -> Change | None:
        """Return how a deletion changes the group that it sees: here it removes all of it."""
        return Change(frozenset(group)) if group else None

    def forget(self, group: Rows) -> Change | None:
        """Return how the group is cleared of a tombstone whose retention has passed: most kinds have none."""
        del group
        return None

    @abstractmethod
    def winners(self, group: Rows) -> frozenset[Dot]:
        """Return the dots of the rows that are shown."""

    def shown(self, group: Rows) -> tuple[Hashable, ...]:
        """Return what the key shows, once for each time that it is shown."""
        return tuple(sorted(((group[dot].key, group[dot].value) for dot in self.winners(group)), key=repr))

    def supports(self, row: Row) -> bool:
        """Whether the row can ever be shown."""
        del row
        return True

    def is_deletion(self, row: Row) -> bool:
        """Whether writing the row was a deletion."""
        return not self.supports(row)

    def hollow(self, row: Row) -> Row:
        """Return what a view's host keeps of the row: key and stamp, no values."""
        return replace(row, value=None)


class Set(Kind):
    """A tuple and its causal length: shown while the greatest length is odd."""

    def insert(self, group: Rows, key: Key, value: Hashable, now: int) -> Change | None:
        """Replace what the write sees by the next odd length."""
        del value, now
        return None if self.winners(group) else self._lengthened(group, key)

    def delete(self, group: Rows) -> Change | None:
        """Replace what the write sees by the next even length."""
        return self._lengthened(group, next(iter(group.values())).key) if self.winners(group) else None

    def forget(self, group: Rows) -> Change | None:
        """Remove a tombstone; it is a write like any other and needs nobody's consent."""
        return Change(frozenset(group)) if group and not self.winners(group) else None

    def winners(self, group: Rows) -> frozenset[Dot]:
        """Return the row of the greatest length, if it is odd; of several the one of the greatest dot."""
        length = _length(group)
        longest = max((dot for dot, row in group.items() if row.value == length), default=None)
        return frozenset({longest}) if longest and length % 2 else frozenset()

    def shown(self, group: Rows) -> tuple[Hashable, ...]:
        """Return the tuple, whatever the length."""
        return tuple(group[dot].key for dot in self.winners(group))

    def supports(self, row: Row) -> bool:
        """Whether the length is odd: a tombstone supports nothing."""
        return isinstance(row.value, int) and row.value % 2 == 1

    def hollow(self, row: Row) -> Row:
        """Keep the length, which decides what is shown."""
        return row

    def _lengthened(self, group: Rows, key: Key) -> Change:
        return Change(frozenset(group), Row(key, _length(group) + 1))


class AddWins(Kind):
    """A tuple, shown while any of its rows lives: an insertion survives a concurrent deletion."""

    def insert(self, group: Rows, key: Key, value: Hashable, now: int) -> Change | None:
        """Replace what the write sees by one new row."""
        del value, now
        return Change(frozenset(group), Row(key))

    def winners(self, group: Rows) -> frozenset[Dot]:
        """Return one row, however many the tuple has."""
        return frozenset({max(group)}) if group else frozenset()

    def shown(self, group: Rows) -> tuple[Hashable, ...]:
        """Return the tuple."""
        return tuple(group[dot].key for dot in self.winners(group))


class Bag(Kind):
    """A tuple for each row: every insertion counts, and every deletion once."""

    separate = True

    def insert(self, group: Rows, key: Key, value: Hashable, now: int) -> Change | None:
        """Add a row and replace none."""
        del group, value, now
        return Change(frozenset(), Row(key))

    def delete(self, group: Rows) -> Change | None:
        """Remove one row that the write sees."""
        return Change(frozenset({min(group)})) if group else None

    def winners(self, group: Rows) -> frozenset[Dot]:
        """Return every row."""
        return frozenset(group)


class Keyed(Kind):
    """A key and its values: of writes that have not seen each other the later is shown."""

    updates = True

    def insert(self, group: Rows, key: Key, value: Hashable, now: int) -> Change | None:
        """Replace what the write sees, even if that is stamped later."""
        return Change(frozenset(group), Row(key, value, now))

    def winners(self, group: Rows) -> frozenset[Dot]:
        """Return the row of the greatest stamp, of equal stamps the one with the greatest dot."""
        return frozenset({max(group, key=lambda dot: (group[dot].stamp, dot))}) if group else frozenset()


def _length(group: Rows) -> int:
    return max((row.value for row in group.values() if isinstance(row.value, int)), default=0)
