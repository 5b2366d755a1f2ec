"""Permits: what of a cut stays whose sender may only insert rows of a relation, or only delete them.

Such a cut is taken like any, and in the same commit what may not be is undone by a write: rows that were
added are removed, and rows that were removed are added again, as they were, under dots of this store. A row
for a key that is there is an update, and takes both rights.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from everview.engines.sqlite.circuits.names import internal
from everview.engines.sqlite.rows.base import GONE, Arrived, StoredRows
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.dots import number_of, site_of
from everview.engines.sqlite.rows.ledger import Partition
from everview.engines.sqlite.rows.serving import forget_digest
from everview.engines.sqlite.rows.staging import pour
from everview.language.relations import Semantics

__all__ = ["PERMITS", "Permit", "restore"]

LOST = f"temp.{internal('lost')}"
"""Temporary, made anew for every relation: the rows that a cut removes, and whether they were shown."""

CAME = f"temp.{internal('came')}"
"""Temporary: the dots of rows that a cut adds, and whether they may not be."""

PERMITS = {CAME: f"CREATE TEMP TABLE {internal('came')} (dot INTEGER PRIMARY KEY, bad INTEGER NOT NULL)"}


class Permit:
    """Decides what of a partition's share of a cut is undone."""

    def __init__(
        self, connection: sqlite3.Connection, stored: StoredRows, *, inserts: bool, deletes: bool
    ) -> None:
        self._connection, self._stored = connection, stored
        self._inserts, self._deletes = inserts, deletes
        self._is_bag = stored.relation.semantics is Semantics.BAG
        self._listed = ", ".join(stored.cells)
        connection.execute(f"DELETE FROM {CAME}")
        connection.execute(f"DROP TABLE IF EXISTS {LOST}")
        rows = f"SELECT {self._listed}, dot, 1 AS shown FROM {stored.table.name} WHERE 0"
        connection.execute(f"CREATE TEMP TABLE {internal('lost')} AS {rows}")
        if not self._is_bag:
            key = ", ".join(stored.table.key()) or "1"
            connection.execute(f"CREATE INDEX {LOST}_key ON {internal('lost')} ({key})")

    def lose(self) -> None:
        """Note the rows that are named in `GONE`."""
        main, *held = self._stored.tables
        for table, shown in ((main, self._stored.is_shown("r")), *((one, "0") for one in held)):
            cells = ", ".join(f"r.{cell}" for cell in (*self._stored.cells, "dot"))
            self._connection.execute(
                f"INSERT INTO {LOST} SELECT {cells}, {shown} FROM {GONE} AS g "
                f"CROSS JOIN {table} AS r ON r.dot = g.dot"
            )

    def come(self, dots: Iterable[int], had: Mapping[int, int]) -> None:
        """Note rows that are added, as far as they were not seen before."""
        new = [dot for dot in dots if number_of(dot) > had.get(site_of(dot), 0)]
        if new:
            pour(self._connection, lambda rows: f"INSERT OR IGNORE INTO {CAME} (bad, dot) {rows}", [new], 0)

    def refused(self) -> list[int]:
        """Return the dots of rows that may not be added."""
        deletes = "NOT r.cl & 1" if self._stored.relation.semantics is Semantics.SET else "0"
        wrong = [] if self._inserts else [f"NOT ({deletes})"]
        if not self._deletes:
            wrong.append(deletes)
            if self._stored.relation.is_keyed:
                wrong.append(self._any("o", "r", f"o.dot NOT IN (SELECT dot FROM {CAME})"))
                wrong.append(f"EXISTS (SELECT 1 FROM {LOST} AS l WHERE {self._on('l', 'r')})")
        for table in self._stored.tables:
            bad = (
                f"SELECT r.dot FROM {CAME} AS c CROSS JOIN {table} AS r ON r.dot = c.dot "
                f"WHERE {' OR '.join(wrong)}"
            )
            self._connection.execute(f"UPDATE {CAME} SET bad = 1 WHERE dot IN ({bad})")
        found = self._connection.execute(f"SELECT dot FROM {CAME} WHERE bad ORDER BY dot")
        return [dot for (dot,) in found]

    def lost(self) -> list[tuple[tuple[Any, ...], bool]]:
        """Return the rows that are to be there again; before others go.

        With each is said whether it was shown, and nothing that was added in its place was refused.
        """
        told = "shown"
        if self._is_bag:
            back = "0" if self._deletes else "1"
        else:
            of_cut = f"o.dot IN (SELECT dot FROM {CAME} WHERE bad = %d)"
            back, overwritten = f"NOT {self._any('o', 'l', of_cut % 0)}", self._any("o", "l", of_cut % 1)
            told = f"shown AND NOT {overwritten}"
            if self._deletes:
                back += f" AND {overwritten}"
        rows = self._connection.execute(
            f"SELECT {self._listed}, {told} FROM {LOST} AS l WHERE {back} ORDER BY dot"
        ).fetchall()
        return [(row[:-1], bool(row[-1])) for row in rows]

    def _any(self, alias: str, key: str, condition: str) -> str:
        """Return the condition that there is such a row of a key."""
        each = (
            f"EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {self._on(alias, key)} AND {condition})"
            for table in self._stored.tables
        )
        return f"({' OR '.join(each)})"

    def _on(self, left: str, right: str) -> str:
        on: Callable[[str, str], str] = getattr(self._stored, "on", self._stored.same)
        return on(left, right)


def restore(
    connection: sqlite3.Connection,
    commit: Commit,
    stored: StoredRows,
    partition: Partition,
    rows: Sequence[tuple[Any, ...]],
) -> list[int]:
    """Add rows again as they were, under dots of this store; the delta holds what that changed."""
    base = commit.ledger.base(partition)
    dots = list(range(base + 1, base + 1 + len(rows)))
    stored.merge(connection, Arrived(list(zip(*rows, strict=True)), dots, commit.version))
    commit.ledger.advance(connection, partition, len(rows), commit.version)
    forget_digest(connection, partition.number)
    commit.grown = True
    return dots
