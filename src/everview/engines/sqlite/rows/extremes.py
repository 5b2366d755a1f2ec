"""Keyed relations of which each column shows its greatest value, or its least: a write can only raise it.

NULL is where every column begins: any value is beyond it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.joined import JoinedRows
from everview.engines.sqlite.rows.keyed import last_of

Row = Sequence[Any]


@dataclass(frozen=True)
class GreatestRows(JoinedRows):
    """Rows (key, values), shown by the greatest value of each column."""

    function = "max"
    """What of two values is shown, in SQL and in Python: stored values compare alike in both."""

    def _once(self, rows: Sequence[Row]) -> Sequence[Row]:
        if last_of(self.relation, rows) is rows:
            return rows
        found: dict[Row, list[Row]] = {}
        for row in rows:
            found.setdefault(tuple(row[place] for place in self.relation.key_positions), []).append(row)
        return [reduce(self._beyond, copies) for copies in found.values()]

    def _beyond(self, row: Row, other: Row) -> Row:
        choose = max if self.function == "max" else min
        return [
            choose((value for value in pair if value is not None), key=_order, default=None)
            for pair in zip(row, other, strict=True)
        ]

    def _meet(self, connection: sqlite3.Connection, base: int, commit: Commit) -> None:
        if self.values:
            connection.execute(self._raised, (base,))

    @cached_property
    def _raised(self) -> str:
        raised = (f"{c} = coalesce({self.function}(d.{c}, r.{c}), d.{c}, r.{c})" for c in self.values)
        return (
            f"UPDATE {self.delta} AS d SET {', '.join(raised)} "
            f"FROM {self.table.name} AS r WHERE {self._replaced}"
        )

    def _join(self, connection: sqlite3.Connection, version: int) -> None:
        shown = {key: key for key in self.table.key()}
        shown |= {value: f"{self.function}({value})" for value in self.values}
        connection.execute(
            f"INSERT INTO {self.table.name} ({', '.join([*shown, 'version'])}) "
            f"SELECT {', '.join([*shown.values(), '?'])} FROM {self._crowded}",
            (version,),
        )


@dataclass(frozen=True)
class LeastRows(GreatestRows):
    """Rows (key, values), shown by the least value of each column."""

    function = "min"


def _order(value: Any) -> tuple[bool, Any]:
    """The order of stored values: NaN is a text, and beyond all numbers."""
    return isinstance(value, str), value
