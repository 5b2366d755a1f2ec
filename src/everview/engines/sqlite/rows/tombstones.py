"""Tombstones: rows of sets that say that a tuple was deleted, and how long they are kept.

To forget one is a write like any other: it removes the row, and needs nobody's consent. A store forgets what
it has deleted itself once the relation's retention has passed. What others have deleted it forgets after
twice that, where it writes at all: they may be gone. So nearly always one store forgets a tombstone, and
those that only read write nothing.

How long a row has been here only the store's own clock says: now and then it is noted which commit was the
last one by then. So a row that comes late is kept as long as any.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from everview.engines.sqlite.circuits.names import internal
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.sets import SetRows
from everview.engines.sqlite.stamps import microseconds

__all__ = ["MOMENTS", "MOMENTS_DDL", "Tombstones"]

MOMENTS = internal("moments")
"""Local version → by when it and all before it had come, in microseconds."""

MOMENTS_DDL = (f"CREATE TABLE {MOMENTS} (version INTEGER PRIMARY KEY, at_us INTEGER NOT NULL)",)

DAY_US = 86_400_000_000

BATCH = 10_000
"""So many tombstones of a relation are forgotten in one commit; the next commit goes on."""


class Tombstones:
    """Forgets what is old enough, with the first commit of a day that is written here."""

    def __init__(self, relations: Iterable[StoredRows]) -> None:
        self._sets = [one for one in relations if isinstance(one, SetRows) and not one.relation.local]
        kept = [one.relation.retention for one in self._sets] or [0]
        self._longest = max(kept)
        self._every = min(DAY_US, max(min(kept) // 32, self._longest // 1024))
        self._next_us = 0

    def tend(self, connection: sqlite3.Connection, commit: Commit) -> None:
        """Note the time and forget what is due, unless that was done not long ago."""
        now_us = microseconds(commit.stamp)
        if now_us < self._next_us or not self._sets:
            return
        self._note(connection, commit.version - 1, microseconds(commit.before), now_us)
        is_done = True
        for stored in self._sets:
            own, others = (self._version(connection, now_us - n * stored.relation.retention) for n in (1, 2))
            if own:
                is_done &= stored.forget(connection, commit, own, others, BATCH) < BATCH
        self._next_us = now_us + self._every if is_done else 0

    def _note(self, connection: sqlite3.Connection, version: int, at_us: int, now_us: int) -> None:
        """Note when the last commit was, and drop what is older than is ever asked for."""
        (noted,) = connection.execute(f"SELECT ifnull(max(at_us), 0) FROM {MOMENTS}").fetchone()
        if version and at_us - noted >= self._every:
            connection.execute(f"INSERT OR IGNORE INTO {MOMENTS} VALUES (?, ?)", (version, at_us))
            oldest = self._version(connection, now_us - 2 * self._longest)
            connection.execute(f"DELETE FROM {MOMENTS} WHERE version < ?", (oldest,))

    @staticmethod
    def _version(connection: sqlite3.Connection, us: int) -> int:
        """Return a commit that was there at a time, and was one of the last; 0 if none is known."""
        found = connection.execute(
            f"SELECT ifnull(max(version), 0) FROM {MOMENTS} WHERE at_us <= ?", (us,)
        ).fetchone()
        return int(found[0])
