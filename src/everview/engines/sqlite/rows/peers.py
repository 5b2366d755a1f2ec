"""What a store remembers of other stores: how far it has read each, who answers where, and alarms.

It is a cursor for each store that was read, and no more: what others have decides nothing here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from everview.engines.sqlite.circuits.names import internal
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.rows.serving import START, Cursor

CURSORS = internal("cursors")
"""Site → how far it was read; `scope` is what the sender calls the streams that this is true of."""

ADDRESSES = internal("addresses")
"""Address → who answered there last, and when."""

ALARMS = internal("alarms")
"""Partition and peer whose vectors were equal and whose digests were not."""

PEERS_DDL = (
    (
        f"CREATE TABLE {CURSORS} (incarnation TEXT PRIMARY KEY, version INTEGER NOT NULL, "
        "tag INTEGER NOT NULL, scope INTEGER NOT NULL) WITHOUT ROWID"
    ),
    (
        f"CREATE TABLE {ADDRESSES} (address TEXT PRIMARY KEY, incarnation TEXT NOT NULL, "
        "synced_us INTEGER NOT NULL) WITHOUT ROWID"
    ),
    (
        f"CREATE TABLE {ALARMS} (stream TEXT, value TEXT, incarnation TEXT, noticed_us INTEGER NOT NULL, "
        "PRIMARY KEY (stream, value, incarnation)) WITHOUT ROWID"
    ),
)


def cursor_on(connection: sqlite3.Connection, incarnation: str) -> tuple[Cursor, int]:
    """Return how far a store was read, and the scope of that."""
    found = connection.execute(
        f"SELECT version, tag, scope FROM {CURSORS} WHERE incarnation = ?", (incarnation,)
    ).fetchone()
    return (START, 0) if found is None else (Cursor(found[0], found[1]), found[2])


def note_cursor(connection: sqlite3.Connection, incarnation: str, cursor: Cursor, scope: int) -> None:
    """Remember how far a store was read."""
    connection.execute(f"INSERT OR REPLACE INTO {CURSORS} VALUES (?, ?, ?, ?)", (incarnation, *cursor, scope))


def who_answers(connection: sqlite3.Connection, address: str) -> str:
    """Return the incarnation that answered at an address last; empty if nobody has."""
    found = connection.execute(
        f"SELECT incarnation FROM {ADDRESSES} WHERE address = ?", (address,)
    ).fetchone()
    return "" if found is None else str(found[0])


def is_known(connection: sqlite3.Connection, address: str, incarnation: str, since_us: int) -> bool:
    """Whether it was noted since a time that a store answers at an address."""
    found = connection.execute(
        f"SELECT 1 FROM {ADDRESSES} WHERE address = ? AND incarnation = ? AND synced_us > ?",
        (address, incarnation, since_us),
    ).fetchone()
    return found is not None


def note_address(connection: sqlite3.Connection, address: str, incarnation: str, now_us: int) -> None:
    """Remember who answers at an address."""
    connection.execute(f"INSERT OR REPLACE INTO {ADDRESSES} VALUES (?, ?, ?)", (address, incarnation, now_us))


def raise_alarm(
    connection: sqlite3.Connection, stream: str, value: str, incarnation: str, now_us: int
) -> None:
    """Note that a partition differs from a peer's although both have seen the same."""
    connection.execute(
        f"INSERT OR IGNORE INTO {ALARMS} VALUES (?, ?, ?, ?)", (stream, value, incarnation, now_us)
    )


def clear_alarms(connection: sqlite3.Connection, stream: str, value: str, incarnation: str) -> None:
    """Forget alarms of a partition that turned out to be equal to a peer's."""
    connection.execute(
        f"DELETE FROM {ALARMS} WHERE stream = ? AND value = ? AND incarnation = ?",
        (stream, value, incarnation),
    )


def alarms(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str, int]]:
    """Yield stream, value, the peer's name or incarnation, and since when, for every alarm."""
    yield from connection.execute(
        f"SELECT a.stream, a.value, ifnull(nullif(s.name, ''), a.incarnation), a.noticed_us "
        f"FROM {ALARMS} AS a LEFT JOIN {SITES} AS s ON s.incarnation = a.incarnation AND s.partition = 0 "
        "ORDER BY 1, 2, 3"
    )
