"""Keyed relations that are merged column by column: of each column the value that was changed last is shown.

A row carries, for each column that is not of the key, the stamp of its last change. A write gives its stamp
to the columns that it changes, or the next after that of the value that it sees there; the others keep
theirs. So two people who edit two columns of a row both keep their edit, whatever their clocks say. Of values
with equal stamps the one is shown whose row has the greater incarnation, and there the greater number: the
same at every site.

A row also says what it goes back to: the row that its writer had last seen told. So of rows that go back to
the same one it is known which values their writers changed (see `conflicts`).

`stamp` is the latest of a row's stamps, and mostly everything else is 0: `since` is how much earlier the row
was that it goes back to, and `a0`, `a1`, … are twice how much earlier each column was changed, and one more
where the column is as it was in that row. A column that came with a later program is older than any change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.names import TAGS
from everview.engines.sqlite.rows.base import INCARNATION
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.digests import PRIME
from everview.engines.sqlite.rows.dots import SHIFT
from everview.engines.sqlite.rows.joined import JoinedRows
from everview.engines.sqlite.rows.keyed import last_of
from everview.language.relations import Relation

_OLDEST = (1 << 62) - 1
_UNKNOWN = (_OLDEST << 1) - PRIME
"""The age of a column that the row's writer did not know. It is odd, and counts for nothing in digests."""

_LATEST = (1 << 63) - 2
"""A stamp that leaves room for one more."""

_TOLD = f"ifnull((SELECT max(version) FROM {TAGS}), 0)"
"""The last version of which anybody was told."""


@dataclass(frozen=True)
class MergedRows(JoinedRows):
    """Rows (key, values, stamp, each value's age)."""

    extra_type = f"INTEGER NOT NULL DEFAULT {_UNKNOWN}"

    @classmethod
    def extras_of(cls, relation: Relation) -> tuple[str, ...]:
        """Return the row's stamp, that of the row it goes back to, and the ages of the columns."""
        values = len(relation.schema) - len(relation.key)
        return ("stamp", "since", *(f"a{place}" for place in range(values)))

    @property
    def ages(self) -> tuple[str, ...]:
        """The columns of ages, in the order of `values`."""
        return self.extras[2:]

    def _once(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        return last_of(self.relation, rows)

    def _add(self, connection: sqlite3.Connection, base: int, commit: Commit) -> int:
        return connection.execute(self._first, (base, commit.version, commit.stamp)).rowcount

    @cached_property
    def _first(self) -> str:
        return self._add_new("?3", "0", *("0" for _ in self.ages))

    def _meet(self, connection: sqlite3.Connection, base: int, commit: Commit) -> None:
        connection.execute(self._aged, (base, commit.stamp))

    @cached_property
    def _aged(self) -> str:
        """Give the commit's stamp, or a later one, to the columns that differ from what is shown."""
        latest = f"min(max(?2, r.stamp + 1), {_LATEST})"
        untold = f"(r.dot >> {SHIFT} = ?1 >> {SHIFT} AND r.version > {_TOLD})"
        changes = [
            f"stamp = {latest}",
            f"since = max({latest} - r.stamp + iif({untold}, min(r.since, r.stamp), 0), 0)",
        ]
        for value, age in zip(self.values, self.ages, strict=True):
            before = changed_at("r", age)
            kept = f"{_twice(f'{latest} - {before}')} | iif({untold}, r.{age} & 1, 1)"
            changed = _twice(f"{latest} - max(?2, {before} + 1)")
            changes.append(f"{age} = iif(r.{value} IS d.{value}, {kept}, {changed})")
        return (
            f"UPDATE {self.delta} AS d SET {', '.join(changes)} "
            f"FROM {self.table.name} AS r WHERE {self._replaced}"
        )

    def completed(self, columns: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Return the columns with ages of those that a narrower program does not have."""
        missing, count = len(self.cells) - len(columns), len(columns[0]) if columns else 0
        return [*columns, *([[_UNKNOWN] * count] * missing)] if missing > 0 else columns

    def _join(self, connection: sqlite3.Connection, version: int) -> None:
        connection.execute(self._joined, (version,))

    @cached_property
    def _joined(self) -> str:
        key = self.table.key()
        latest = [f"max(stamp - ({age} >> 1)) AS m{place}" for place, age in enumerate(self.ages)]
        groups = f"SELECT {', '.join([*key, 'max(stamp) AS stamp', *latest])} FROM {self._crowded}"
        order = f"{INCARNATION.format(dot='h.dot')} DESC, h.dot DESC"
        shown = dict(zip(key, (f"g.{name}" for name in key), strict=True))
        for place, (value, age) in enumerate(zip(self.values, self.ages, strict=True)):
            shown[value] = (
                f"(SELECT h.{value} FROM {self.held} AS h WHERE {self.on('h', 'g')} "
                f"AND {changed_at('h', age)} = g.m{place} ORDER BY {order} LIMIT 1)"
            )
            shown[age] = _twice(f"g.stamp - g.m{place}")
        shown |= {"stamp": "g.stamp", "since": "0", "version": "?"}
        return (
            f"INSERT INTO {self.table.name} ({', '.join(shown)}) "
            f"SELECT {', '.join(shown.values())} FROM ({groups}) AS g"
        )


def changed_at(row: str, age: str) -> str:
    """Return the stamp of a column of a row, given the column of its age."""
    return f"({row}.stamp - ({row}.{age} >> 1))"


def _twice(age: str) -> str:
    """Twice an age; others may have made stamps and ages as great as an INTEGER can be."""
    return f"(max(min({age}, {_OLDEST}), 0) << 1)"
