"""Kinds whose rows are joined: values of any lattice, and rows merged column by column.

The tie-break of a column is its value. So equal stamps are no exception, and columns form a lattice:
joining is associative, and what is shown does not depend on who joined which rows first.

Of a deleted row no stamps are left. So where a key is deleted and written anew, a concurrent edit of
the old row may win by its clock. And a row carries what its writer has seen, whoever wrote it.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from functools import reduce
from typing import Any, NamedTuple

from spec.replication.kinds import Change, Kind
from spec.replication.rows import Key, Row, Rows
from spec.replication.rules import Rule, holds
from spec.replication.vectors import Dot


class Joined(Kind):
    """A key and a lattice value: an insertion replaces what it sees by the join with what it writes."""

    named = False
    updates = True

    @abstractmethod
    def join(self, one: Any, other: Any) -> Any:
        """Return the least value above both."""

    @abstractmethod
    def written(self, value: Any, seen: Any, now: int) -> Any:
        """Return the value that a write to `seen` stands for; `seen` is None if nothing is there."""

    def value(self, group: Rows) -> Any:
        """Return the join of all values of the group, None if it has no rows."""
        return reduce(self.join, (row.value for row in group.values())) if group else None

    def insert(self, group: Rows, key: Key, value: Hashable, now: int) -> Change | None:
        """Replace the group by one row, also if that says the same: it survives a deletion elsewhere."""
        seen = self.value(group)
        new = self.written(value, seen, now)
        return Change(frozenset(group), Row(key, new if seen is None else self.join(seen, new)))

    def winners(self, group: Rows) -> frozenset[Dot]:
        """Return every row: all of them are in what is shown."""
        return frozenset(group)

    def shown(self, group: Rows) -> tuple[Hashable, ...]:
        """Return the key and the joined value."""
        return tuple({(row.key, self.value(group)) for row in group.values()})

    def hollow(self, row: Row) -> Row:
        """Keep the row whole: no name stands for what it shows."""
        return row


class Greatest(Joined):
    """A number: the greatest that was written is shown."""

    def join(self, one: Any, other: Any) -> Any:
        """Return the greater."""
        return max(one, other)

    def written(self, value: Any, seen: Any, now: int) -> Any:
        """Return the number itself."""
        del seen, now
        return value


class Cell(NamedTuple):
    """The value of a column and the stamp of its last change; cells are ordered by both."""

    stamp: int
    value: Any


class Merged(Joined):
    """Columns, each with a stamp of its own: two people who edit two columns both keep their edit.

    A write's stamp is its clock, or more than the stamp that it replaces if the clock is behind that.
    Intuitively: another row may still carry the replaced cell, and would win it back.
    """

    def join(self, one: Any, other: Any) -> Any:
        """Return, column by column, the greater cell."""
        cells = dict(one)
        for column, cell in other:
            cells[column] = max(cell, cells.get(column, cell))
        return tuple(sorted(cells.items()))

    def written(self, value: Any, seen: Any, now: int) -> Any:
        """Return the cells of the columns that change."""
        before = dict(seen or ())
        changes: Mapping[str, Any] = dict(value)
        if not holds(Rule.KEPT):
            changes = {**{column: cell.value for column, cell in before.items()}, **changes}
        return tuple(
            sorted(
                (column, Cell(_stamp(now, before.get(column)), new))
                for column, new in changes.items()
                if column not in before or before[column].value != new or not holds(Rule.KEPT)
            )
        )

    def shown(self, group: Rows) -> tuple[Hashable, ...]:
        """Return the key and the columns' values."""
        value = self.value(group)
        return tuple({(row.key, tuple((c, cell.value) for c, cell in value)) for row in group.values()})


def _stamp(now: int, replaced: Cell | None) -> int:
    return now if replaced is None or not holds(Rule.STAMPED) else max(now, replaced.stamp + 1)
