"""Taking a cut: removals first, then rows that were not seen, then the vector.

What a store has seen and does not hold is gone; so a row that the vector covers is not taken again, and a row
that the sender's vector covers and that it does not hold goes here, too. All parts of a cut are taken in one
commit. Removals of rows that were never held are logged for readers who may hold them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.circuits.names import internal
from everview.engines.sqlite.rows.base import GONE, Arrived, StoredRows, dots_within, name_gone
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.ledger import NOT_LOGGED, PARTITIONS, REMOVED, VECTORS, Partition, vector
from everview.engines.sqlite.rows.permits import Permit
from everview.engines.sqlite.rows.refusals import taken_from_owner
from everview.engines.sqlite.rows.serving import (
    NO_DIGEST,
    Mode,
    Removals,
    Rows,
    change_digest,
    digest_of,
    includes,
    sum_rows,
)
from everview.engines.sqlite.rows.staging import pour

LIVE = f"temp.{internal('live')}"
"""Temporary: intervals of the dots that live at the sender of a cut."""

COVERED = f"temp.{internal('covered')}"
"""Temporary: a vector: site → number."""

REMEMBERED = 1_000
"""So many removals are remembered of a partition, and as many as it has rows: to tell more is to tell all."""

TAKING = {
    LIVE: f"CREATE TEMP TABLE {internal('live')} (low INTEGER PRIMARY KEY, high INTEGER NOT NULL)",
    COVERED: f"CREATE TEMP TABLE {internal('covered')} (site INTEGER PRIMARY KEY, seen INTEGER NOT NULL)",
}

_IS_COVERED = f"(dot & 0xFFFFFFFFFF) <= ifnull((SELECT seen FROM {COVERED} WHERE site = dot >> 40), 0)"
_IS_LIVE = f"dot <= ifnull((SELECT high FROM {LIVE} WHERE low <= dot ORDER BY low DESC LIMIT 1), -1)"


@dataclass(frozen=True, slots=True)
class Part:
    """One partition's share of a cut: what went, and the sender's vector; rows come apart, page by page."""

    stored: StoredRows
    partition: Partition
    vector: Mapping[int, int]
    removals: Removals
    repairs: bool = False
    """Whether all that the sender has seen is taken from it anew, whatever is here."""
    permit: Permit | None = None
    """What the sender may not do with the rows, if there is such a thing."""


class Taking:
    """Takes one partition's share of a cut."""

    def __init__(self, connection: sqlite3.Connection, commit: Commit, part: Part) -> None:
        self._connection, self._commit, self._part = connection, commit, part
        part.partition.is_crowded = None  # it may come to be
        had = vector(connection, part.partition.number)
        # Who has not seen what was removed here would bring it back.
        self._repairs = part.repairs and includes(part.vector, had)
        self.had = {} if self._repairs else had
        self._came: list[tuple[int, int]] = []
        self._went = NO_DIGEST
        self.lost: list[tuple[Any, ...]] = []
        """Rows of this site's own that somebody else has removed, and may not."""
        digest_of(connection, part.stored, part.partition.number, commit.version - 1)

    def remove(self) -> bool:
        """Remove what went; return whether anything is to be carried to the circuits."""
        part, connection = self._part, self._connection
        removals = part.removals
        connection.execute(f"DELETE FROM {GONE}")
        if removals.mode is Mode.LIVE:
            connection.execute(f"DELETE FROM {LIVE}")
            pairs = zip(removals.dots, removals.highs, strict=True)
            connection.executemany(f"INSERT INTO {LIVE} VALUES (?, ?)", pairs)
            self._cover(part.vector)
            # To repair a partition is to take all of it anew, as far as the sender has seen it.
            gone = _IS_COVERED if self._repairs else f"{_IS_COVERED} AND NOT {_IS_LIVE}"
            for table in part.stored.tables:
                rows = dots_within(table) if part.stored.is_partitioned else table
                given = {"partition": part.partition.number}
                connection.execute(f"INSERT INTO {GONE} SELECT dot FROM {rows} WHERE {gone}", given)
        elif removals.dots:
            pour(connection, lambda dots: f"INSERT OR IGNORE INTO {GONE} {dots}", [removals.dots])
        else:
            return False
        held = part.stored.gone_rows()
        if part.permit is not None:
            part.permit.lose()
        self._went = self._sum(held)
        self.lost = taken_from_owner(connection, part.stored, self._commit.name, self.had, part.vector)
        if part.partition.is_logged and not self._repairs:
            self._log(held)
        part.stored.remove(connection, self._commit.version)
        if self._repairs:  # the same rows come again
            connection.execute(f"DELETE FROM {GONE}")
        return True

    def _sum(self, held: str) -> tuple[int, int]:
        """The digest of rows; of those that have none, whether there are any."""
        if self._part.stored.is_summed:
            return sum_rows(self._connection, held)
        (some,) = self._connection.execute(f"SELECT EXISTS (SELECT 1 FROM ({held}))").fetchone()
        return int(some), 0

    def _log(self, held: str) -> None:
        """Log removals of rows that are held, and of rows never seen, which a reader may hold."""
        connection, number, version = self._connection, self._part.partition.number, self._commit.version
        into = f"INSERT OR IGNORE INTO {REMOVED} (partition, version, dot, term)"
        connection.execute(f"{into} SELECT ?, ?, dot, term FROM ({held})", (number, version))
        self._cover(self.had)
        connection.execute(
            f"{into} SELECT ?, ?, dot, NULL FROM {GONE} WHERE NOT {_IS_COVERED}", (number, version)
        )

    @cached_property
    def _gone(self) -> frozenset[int]:
        return frozenset(self._part.removals.dots)

    def _cover(self, seen: Mapping[int, int]) -> None:
        self._connection.execute(f"DELETE FROM {COVERED}")
        self._connection.executemany(f"INSERT INTO {COVERED} VALUES (?, ?)", seen.items())

    def add(self, rows: Rows) -> int:
        """Add rows that were not seen, and that did not go meanwhile; return how many."""
        part, connection = self._part, self._connection
        left_out = []
        if not rows.is_new:  # something came from elsewhere since it was asked for
            self._cover(self.had)
            left_out.append(_IS_COVERED)
        if part.removals.mode is Mode.LIVE:
            left_out.append(f"NOT {_IS_LIVE}")
        elif not self._gone.isdisjoint(rows.dots):
            left_out.append(f"dot IN (SELECT dot FROM {GONE})")
        if part.permit is not None:
            part.permit.come(rows.dots, self.had)
        arrived = Arrived(rows.columns, rows.dots, self._commit.version)
        count, digest = part.stored.merge(connection, arrived, unless=" OR ".join(left_out))
        self._came.append(digest)
        return count

    def finish(self) -> tuple[int, int]:
        """Join the vector, and note where the log has a gap now; return the partition's digest."""
        connection, part, commit = self._connection, self._part, self._commit
        number = part.partition.number
        news = {site: seen for site, seen in part.vector.items() if seen > self.had.get(site, 0)}
        gap = part.removals.mode is Mode.LIVE and bool(news or self._repairs)
        connection.executemany(
            f"INSERT INTO {VECTORS} VALUES (?1, ?2, ?3, ?4, 0) "
            "ON CONFLICT DO UPDATE SET seen = excluded.seen, changed = excluded.changed",
            ((number, site, seen, commit.version) for site, seen in news.items()),
        )
        if gap:
            connection.executemany(
                f"UPDATE {VECTORS} SET forgotten = max(forgotten, ?) WHERE partition = ? AND site = ?",
                ((seen, number, site) for site, seen in part.vector.items()),
            )
            connection.execute(
                f"UPDATE {PARTITIONS} SET floor = ? WHERE number = ? AND floor <> ?",
                (commit.version, number, NOT_LOGGED),
            )
        if news or self._went != NO_DIGEST:  # else the commit may get no number
            commit.grown = True
            change_digest(connection, number, self._came, self._went, commit.version)
        return digest_of(
            connection, part.stored, number, commit.version if commit.grown else commit.version - 1
        )


def trim_log(connection: sqlite3.Connection, stored: StoredRows, partition: int) -> None:
    """Forget removals but for the last few: who lags further behind is told of what lives."""
    (logged,) = connection.execute(
        f"SELECT count(*) FROM {REMOVED} WHERE partition = ?", (partition,)
    ).fetchone()
    if logged <= REMEMBERED:
        return
    told = dots_within(stored.table.name) if stored.is_partitioned else stored.table.name
    (rows,) = connection.execute(f"SELECT count(*) FROM {told}", {"partition": partition}).fetchone()
    forget_log(connection, partition, REMEMBERED + rows)


def forget_log(connection: sqlite3.Connection, partition: int, keep: int) -> int:
    """Forget removals but for so many of the last ones, and others of their commits; return how many."""
    oldest = connection.execute(
        f"SELECT version FROM {REMOVED} WHERE partition = ? ORDER BY version DESC LIMIT 1 OFFSET ?",
        (partition, keep),
    ).fetchone()
    if oldest is None:
        return 0
    count = connection.execute(
        f"DELETE FROM {REMOVED} WHERE partition = ? AND version <= ?", (partition, *oldest)
    ).rowcount
    connection.execute(
        f"UPDATE {PARTITIONS} SET floor = max(floor, ?) WHERE number = ?", (*oldest, partition)
    )
    connection.execute(f"UPDATE {VECTORS} SET forgotten = seen WHERE partition = ?", (partition,))
    return count


def undo(
    connection: sqlite3.Connection,
    commit: Commit,
    stored: StoredRows,
    partition: Partition,
    dots: Iterable[int],
) -> None:
    """Remove rows that were just taken, by a write of this store; the delta holds what that changed."""
    ledger = commit.ledger
    name_gone(connection, dots)
    held = stored.gone_rows()
    went = sum_rows(connection, held)
    into = f"INSERT OR IGNORE INTO {REMOVED} (partition, version, dot, term)"
    connection.execute(f"{into} SELECT ?, ?, dot, term FROM ({held})", (partition.number, commit.version))
    stored.remove(connection, commit.version)
    change_digest(connection, partition.number, (), went, commit.version)
    ledger.advance(connection, partition, 1, commit.version)
    commit.grown = True
