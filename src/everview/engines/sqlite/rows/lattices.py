"""Rows (key, value) whose values are elements of a lattice: a key shows the join of all its rows' values.

The value is a BLOB, one for each element, and the join is given as a function. It is what states of
computational CRDTs are kept in, by stage and key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.joined import JoinedRows

Join = Callable[[bytes, bytes], bytes]
"""Associative, commutative and idempotent; of equal elements it returns equal bytes."""


def _no_join(_left: bytes, _right: bytes) -> bytes:
    raise AssertionError("a relation of lattice values is declared with a join")


@dataclass(frozen=True)
class LatticeRows(JoinedRows):
    """Rows (key, value) under a join."""

    join: Join = field(default=_no_join, compare=False)

    def __post_init__(self) -> None:
        assert len(self.values) == 1, "one column has the lattice's elements"

    @property
    def _place(self) -> int:
        return self.table.columns.index(self.values[0])

    def _once(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        place, found = self._place, dict[tuple[Any, ...], bytes]()
        for row in rows:
            key = (*row[:place], *row[place + 1 :])
            found[key] = self.join(found[key], row[place]) if key in found else row[place]
        return [(*key[:place], value, *key[place:]) for key, value in found.items()]

    def _meet(self, connection: sqlite3.Connection, base: int, commit: Commit) -> None:
        (value,) = self.values
        seen = connection.execute(
            f"SELECT d.rowid, d.{value}, r.{value} FROM {self.delta} AS d "
            f"CROSS JOIN {self.table.name} AS r ON {self._replaced}",
            (base,),
        ).fetchall()
        connection.executemany(
            f"UPDATE {self.delta} SET {value} = ? WHERE rowid = ?",
            [(self.join(theirs, ours), place) for place, ours, theirs in seen],
        )

    def _join(self, connection: sqlite3.Connection, version: int) -> None:
        (value,), key = self.values, self.table.key()
        keys = ", ".join(key)
        crowded = f"({keys}) IN (SELECT {keys} FROM {self._crowded})"
        rows = connection.execute(f"SELECT {keys}, {value} FROM {self.scratch} WHERE {crowded}")
        found: dict[tuple[Any, ...], list[bytes]] = {}
        for *of, element in rows:
            found.setdefault(tuple(of), []).append(element)
        names = ", ".join([*key, value, "version"])
        marks = ", ".join("?" * (len(key) + 2))
        connection.executemany(
            f"INSERT INTO {self.table.name} ({names}) VALUES ({marks})",
            [(*of, reduce(self.join, elements), version) for of, elements in found.items()],
        )
