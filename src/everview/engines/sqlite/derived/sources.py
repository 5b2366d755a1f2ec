"""Sources: a relation, read as the hollow input of a view that another site hosts.

A row is told if it passes the view's predicates on its relation, with its key's or tuple's id and the cells
that branches over it alone make of it. Nothing is stored for that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from everview.engines.sqlite.derived.hashing import Hasher
from everview.engines.sqlite.derived.reduced import Payload, Reduced
from everview.engines.sqlite.measuring import Bound, fetch, long_columns
from everview.engines.sqlite.parts import Row
from everview.engines.sqlite.rows.base import RANGES, StoredRows
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.language.expressions import TRUE, conjunction


@dataclass(frozen=True)
class HollowSource:
    """The rows of a relation, reduced."""

    stored: StoredRows
    reduced: Reduced

    is_summed = False

    is_partitioned = False

    def all_rows(self, *, within: bool = False) -> str:
        """Return the SELECT of the relation's rows; they are not summed up."""
        return self.stored.all_rows(within=within)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the relation's live rows, also of those that are not told."""
        return self.stored.tables

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """The columns of its rows on the wire, their dots left out."""
        return (*(field.name for field in self.reduced.relation.schema), *self.stored.extras)

    @cached_property
    def _hasher(self) -> Hasher:
        return Hasher(self.reduced.base)

    @cached_property
    def _read(self) -> tuple[str, int]:
        """The columns that are read of a row r, and how many of them make up its id."""
        cells = [f"r.{column}" for column in self.stored.table.columns]
        named = len(cells) if self.reduced.names else 0
        shown = self.stored.is_shown("r")
        made = [cell for payload in self.reduced.payloads for cell in _made(payload, cells, shown)]
        own = [f"r.{extra}" for extra in self.stored.extras]
        return ", ".join([*cells[:named], *made, *own, "r.dot AS dot"]), named

    @cached_property
    def _where(self) -> str:
        if self.reduced.passing == TRUE:
            return ""
        cells = [f"r.{column}" for column in self.stored.table.columns]
        return f" WHERE {compile_expression(self.reduced.passing, cells)}"

    def read(self, connection: sqlite3.Connection, limit: int, room: int) -> tuple[list[Row], int]:
        """Return rows whose dots lie in the ranges, by dot: at most so many, or of about so many bytes."""
        listed, named = self._read
        tables = self.tables if self.stored.is_crowded(connection) else self.tables[:1]
        found = [
            f"SELECT {listed} FROM {RANGES} AS g CROSS JOIN {table} AS r ON r.dot BETWEEN g.low AND g.high"
            f"{self._where}"
            for table in tables
        ]
        crowded = len(found) > 1
        sql = f"SELECT * FROM ({' UNION ALL '.join(found)}) ORDER BY dot" if crowded else found[0]
        sql += "" if crowded else " ORDER BY g.low, r.dot"
        bound = Bound(limit, room, self._weighed)
        rows, used = fetch(connection.execute(f"{sql} LIMIT ?", (limit,)), bound)
        if not named:
            return rows, used
        highs, lows = self._hasher.ids(rows)
        return [(high, low, *row[named:]) for high, low, row in zip(highs, lows, rows, strict=True)], used

    @cached_property
    def _weighed(self) -> tuple[int, ...]:
        """The columns of what is read whose bytes are counted: a long one is read, also if it is not told."""
        base = self.reduced.base.schema if self.reduced.names else ()
        told = self.reduced.relation.schema[len(self.reduced.names) :]
        return long_columns((*base, *told))


def _made(payload: Payload, cells: Sequence[str], shown: str) -> list[str]:
    """What a branch makes of a row: whether it has one, where that is asked, and its cells."""
    made = [compile_expression(expression, cells) for expression in payload.branch.expressions]
    if payload.flag is not None:
        passes = f"({compile_expression(conjunction(payload.branch.conditions), cells)}) AND {shown}"
        return [f"({passes}) IS TRUE", *(f"CASE WHEN {passes} THEN {cell} END" for cell in made)]
    return made if shown == "1" else [f"CASE WHEN {shown} THEN {cell} END" for cell in made]
