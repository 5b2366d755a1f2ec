"""Gupta's counting algorithm on plain SQLite, as one would write it by hand: what Streams compares with.

A view's row is stored once, with the number of its derivations; a batch of changes is staged, applied to
the relation, and its derivations are added to or taken from the counts; a row whose count is 0 goes.
Set-oriented statements, a partial index that finds the zeros, the same pragmas as a site's store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from everview.engines.sqlite.connections import PRAGMAS

Row = tuple[int, ...]

_CHUNK = 250
"""Rows in one INSERT … VALUES; faster than `executemany`, and what the site does too."""

_TABLES = """
CREATE TABLE r1 (a INTEGER NOT NULL, b INTEGER NOT NULL, c INTEGER NOT NULL, d INTEGER NOT NULL,
                 e INTEGER NOT NULL, PRIMARY KEY (a, b, c, d, e)) WITHOUT ROWID;
CREATE TABLE r2 (k INTEGER NOT NULL, c INTEGER NOT NULL, PRIMARY KEY (k, c)) WITHOUT ROWID;
CREATE TEMP TABLE delta (a, b, c, d, e);
"""

_PROJECTION = """
CREATE TABLE v (b INTEGER NOT NULL, c INTEGER NOT NULL, n INTEGER NOT NULL,
                PRIMARY KEY (b, c)) WITHOUT ROWID;
CREATE INDEX v_zero ON v (n) WHERE n = 0;
"""

# Both inputs may change, so each is indexed by what the other one finds it by.
_JOIN = """
CREATE TABLE v (a INTEGER NOT NULL, b INTEGER NOT NULL, c INTEGER NOT NULL, d INTEGER NOT NULL,
                e INTEGER NOT NULL, k INTEGER NOT NULL, n INTEGER NOT NULL,
                PRIMARY KEY (a, b, c, d, e, k)) WITHOUT ROWID;
CREATE INDEX v_zero ON v (n) WHERE n = 0;
CREATE INDEX r1_c ON r1 (c);
CREATE INDEX r2_c ON r2 (c);
"""

_DERIVED = {
    "projection": "SELECT b, c, {sign}1 FROM temp.delta WHERE 1",
    "join": "SELECT x.a, x.b, x.c, x.d, x.e, r2.k, {sign}1 FROM temp.delta AS x "
    "CROSS JOIN r2 ON r2.c = x.c WHERE 1",
}


class Counting:
    """A relation and one view, `projection` or `join`, kept by counts."""

    def __init__(self, path: Path, view: str, r2: Sequence[Row]) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, cached_statements=1024)
        self.connection.execute("PRAGMA journal_mode = WAL")
        for pragma in PRAGMAS:
            self.connection.execute(pragma)
        self.connection.executescript(_TABLES + (_PROJECTION if view == "projection" else _JOIN))
        self.connection.executemany("INSERT INTO r2 VALUES (?, ?)", r2)
        self._derived = _DERIVED[view]

    def insert(self, rows: Sequence[Row]) -> int:
        """Insert rows, none of which is there, in one transaction; return how many there were."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        self._stage(rows)
        count = execute("INSERT OR IGNORE INTO r1 SELECT * FROM temp.delta").rowcount
        self._count("")
        execute("DELETE FROM temp.delta")
        execute("COMMIT")
        return count

    def delete(self, rows: Sequence[Row]) -> int:
        """Delete rows, all of which are there, in one transaction; return how many there were."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        self._stage(rows)
        count = execute("DELETE FROM r1 WHERE (a, b, c, d, e) IN (SELECT * FROM temp.delta)").rowcount
        self._count("-")
        execute("DELETE FROM v WHERE n = 0")
        execute("DELETE FROM temp.delta")
        execute("COMMIT")
        return count

    def _stage(self, rows: Sequence[Row]) -> None:
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            values = ", ".join(["(?, ?, ?, ?, ?)"] * len(part))
            self.connection.execute(
                f"INSERT INTO temp.delta VALUES {values}", list(chain.from_iterable(part))
            )

    def _count(self, sign: str) -> None:
        derived = self._derived.format(sign=sign)
        self.connection.execute(f"INSERT INTO v {derived} ON CONFLICT DO UPDATE SET n = n + excluded.n")
