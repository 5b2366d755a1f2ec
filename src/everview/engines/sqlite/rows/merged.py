"""Keyed relations that are merged column by column: of each column the value that was changed last is shown.

A row carries, for each column that is not of the key, the stamp of its last change: `stamp` is that of the
latest, and a column's own is earlier by its age, which mostly is 0. A write gives its stamp to the columns
that it changes; the others keep theirs. So two people who edit two columns of a row both keep their edit.

Of values with equal stamps the one is shown whose row has the greater incarnation, and there the greater
number: the same at every site.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.rows.base import INCARNATION
from everview.engines.sqlite.rows.joined import JoinedRows
from everview.engines.sqlite.rows.keyed import last_of
from everview.language.relations import Relation


@dataclass(frozen=True)
class MergedRows(JoinedRows):
    """Rows (key, values, stamp, each value's age)."""

    @classmethod
    def extras_of(cls, relation: Relation) -> tuple[str, ...]:
        """Return the row's stamp, and the ages of the columns."""
        values = len(relation.schema) - len(relation.key)
        return ("stamp", *(f"a{place}" for place in range(values)))

    @property
    def ages(self) -> tuple[str, ...]:
        """The columns of ages, in the order of `values`."""
        return self.extras[1:]

    def _once(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        return last_of(self.relation, rows)

    def _add(self, connection: sqlite3.Connection, base: int, commit: Commit) -> int:
        return connection.execute(self._first, (base, commit.version, commit.stamp)).rowcount

    @cached_property
    def _first(self) -> str:
        return self._add_new("?3", *("0" for _ in self.ages))

    def _meet(self, connection: sqlite3.Connection, base: int, commit: Commit) -> None:
        connection.execute(self._aged, (base, commit.stamp))

    @cached_property
    def _aged(self) -> str:
        """Give the commit's stamp to the columns that differ from what is shown."""
        latest = "max(?2, r.stamp)"
        ages = (
            f"{age} = {latest} - iif(r.{value} IS d.{value}, r.stamp - r.{age}, ?2)"
            for value, age in zip(self.values, self.ages, strict=True)
        )
        return (
            f"UPDATE {self.delta} AS d SET {', '.join([f'stamp = {latest}', *ages])} "
            f"FROM {self.table.name} AS r WHERE {self._replaced}"
        )

    def _join(self, connection: sqlite3.Connection, version: int) -> None:
        connection.execute(self._joined, (version,))

    @cached_property
    def _joined(self) -> str:
        key = self.table.key()
        latest = [f"max(stamp - {age}) AS m{place}" for place, age in enumerate(self.ages)]
        groups = f"SELECT {', '.join([*key, 'max(stamp) AS stamp', *latest])} FROM {self._crowded}"
        order = f"{INCARNATION.format(dot='h.dot')} DESC, h.dot DESC"
        shown = dict(zip(key, (f"g.{name}" for name in key), strict=True))
        for place, (value, age) in enumerate(zip(self.values, self.ages, strict=True)):
            shown[value] = (
                f"(SELECT h.{value} FROM {self.held} AS h WHERE {self.on('h', 'g')} "
                f"AND h.stamp - h.{age} = g.m{place} ORDER BY {order} LIMIT 1)"
            )
            shown[age] = f"g.stamp - g.m{place}"
        shown |= {"stamp": "g.stamp", "version": "?"}
        return (
            f"INSERT INTO {self.table.name} ({', '.join(shown)}) "
            f"SELECT {', '.join(shown.values())} FROM ({groups}) AS g"
        )
