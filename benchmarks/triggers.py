"""Three views kept by hand-written triggers on bare SQLite tables: what small commits are compared with.

A projection and a join with duplicates, each row with its count, and a group-by with count, sum and max.
The relations are sets, as a site's are. Both may change, so both have triggers and the indexes these need.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from everview.engines.sqlite.connections import PRAGMAS

Row = tuple[int, ...]

_TABLES = """
CREATE TABLE r (a INTEGER NOT NULL, b INTEGER NOT NULL, c INTEGER NOT NULL, d INTEGER NOT NULL,
                e INTEGER NOT NULL, PRIMARY KEY (a, b, c, d, e)) WITHOUT ROWID;
CREATE TABLE s (k INTEGER NOT NULL, c INTEGER NOT NULL, PRIMARY KEY (k, c)) WITHOUT ROWID;
CREATE INDEX r_c ON r (c);
CREATE INDEX r_be ON r (b, e);
CREATE INDEX s_c ON s (c);
CREATE TABLE projection (b INTEGER NOT NULL, c INTEGER NOT NULL, n INTEGER NOT NULL,
                         PRIMARY KEY (b, c)) WITHOUT ROWID;
CREATE TABLE joined (a INTEGER NOT NULL, b INTEGER NOT NULL, k INTEGER NOT NULL, n INTEGER NOT NULL,
                     PRIMARY KEY (a, b, k)) WITHOUT ROWID;
CREATE TABLE grouped (b INTEGER PRIMARY KEY, n INTEGER NOT NULL, total INTEGER NOT NULL, most INTEGER);

CREATE TRIGGER r_inserted AFTER INSERT ON r BEGIN
  INSERT INTO projection VALUES (new.b, new.c, 1) ON CONFLICT DO UPDATE SET n = n + 1;
  INSERT INTO joined SELECT new.a, new.b, s.k, 1 FROM s WHERE s.c = new.c
    ON CONFLICT DO UPDATE SET n = n + 1;
  INSERT INTO grouped VALUES (new.b, 1, new.d, new.e)
    ON CONFLICT DO UPDATE SET n = n + 1, total = total + excluded.total, most = max(most, excluded.most);
END;
CREATE TRIGGER r_deleted AFTER DELETE ON r BEGIN
  UPDATE projection SET n = n - 1 WHERE b = old.b AND c = old.c;
  DELETE FROM projection WHERE b = old.b AND c = old.c AND n = 0;
  UPDATE joined SET n = n - 1 WHERE a = old.a AND b = old.b AND k IN (SELECT k FROM s WHERE c = old.c);
  DELETE FROM joined WHERE a = old.a AND b = old.b AND k IN (SELECT k FROM s WHERE c = old.c) AND n = 0;
  UPDATE grouped SET n = n - 1, total = total - old.d, most = (SELECT max(e) FROM r WHERE b = old.b)
    WHERE b = old.b;
  DELETE FROM grouped WHERE b = old.b AND n = 0;
END;
CREATE TRIGGER s_inserted AFTER INSERT ON s BEGIN
  INSERT INTO joined SELECT a, b, new.k, count(*) FROM r WHERE c = new.c GROUP BY a, b
    ON CONFLICT DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER s_deleted AFTER DELETE ON s BEGIN
  INSERT INTO joined SELECT a, b, old.k, -count(*) FROM r WHERE c = old.c GROUP BY a, b
    ON CONFLICT DO UPDATE SET n = n + excluded.n;
  DELETE FROM joined WHERE n = 0 AND (a, b) IN (SELECT a, b FROM r WHERE c = old.c) AND k = old.k;
END;
"""

_COPIES = (
    "WITH RECURSIVE copy (x, y, z, n) AS ({rows} UNION ALL SELECT x, y, z, n - 1 FROM copy WHERE n > 1) "
    "SELECT {shown} FROM copy ORDER BY 1, 2, 3"
)
_CONTENTS = {
    "projection": _COPIES.format(rows="SELECT b, c, 0, n FROM projection", shown="x, y").replace(", 3", ""),
    "joined": _COPIES.format(rows="SELECT a, b, k, n FROM joined", shown="x, y, z"),
    "grouped": "SELECT b, n, total, most FROM grouped ORDER BY b",
}


class Triggers:
    """The relations and views; every statement is a commit of its own."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, cached_statements=1024)
        if path != ":memory:":
            self._connection.execute("PRAGMA journal_mode = WAL")
        for pragma in PRAGMAS:
            self._connection.execute(pragma)
        self._connection.executescript(_TABLES)

    def load(self, relation: str, rows: Sequence[Row]) -> None:
        """Insert many rows in one transaction."""
        self._connection.execute("BEGIN")
        marks = ", ".join("?" * len(rows[0]))
        self._connection.executemany(f"INSERT INTO {relation} VALUES ({marks})", rows)
        self._connection.execute("COMMIT")

    def insert(self, row: Row) -> int:
        """Insert one row into r; return 1 if it was not there."""
        return self._connection.execute("INSERT OR IGNORE INTO r VALUES (?, ?, ?, ?, ?)", row).rowcount

    def delete(self, row: Row) -> int:
        """Delete one row of r; return 1 if it was there."""
        return self._connection.execute(
            "DELETE FROM r WHERE a = ? AND b = ? AND c = ? AND d = ? AND e = ?", row
        ).rowcount

    def rows(self, view: str) -> list[Row]:
        """Return the rows of a view, duplicates repeated, sorted."""
        return self._connection.execute(_CONTENTS[view]).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
