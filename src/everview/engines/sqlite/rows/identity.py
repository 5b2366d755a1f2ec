"""Identity: a store that was copied or went back in time goes on as a new incarnation.

Its rows stay as they are: they are live rows like any. Only rows that it wrote under numbers that others know
for other rows get dots of the new incarnation: those since it was opened, when a peer finds out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from everview.engines.sqlite.names import PAGES, STORE, TAGS
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.dots import dot
from everview.engines.sqlite.rows.ledger import PARTITIONS, VECTORS, Ledger, number_sites
from everview.engines.sqlite.store import Store


def renew(connection: sqlite3.Connection, store: Store) -> int:
    """Take a new incarnation; return the number of the old one."""
    old, new = store.ledger.site, store.environment.incarnation()
    number_sites(connection, [new], {new: store.name})
    connection.execute(f"UPDATE {STORE} SET incarnation = ?, shown = 0", (new,))
    connection.execute(f"DELETE FROM {PAGES}")
    connection.execute(f"DELETE FROM {TAGS}")
    connection.execute(f"UPDATE {PARTITIONS} SET summed = 0")  # `own` counts rows of the old one
    store.read_identity(connection)
    return old


def opened_at(ledger: Ledger) -> dict[str, int]:
    """Return how many numbers of its own a store had used up when it was opened, by stream."""
    return {partition.stream: partition.seen for partition in ledger.partitions.values()}


def rewrite(
    connection: sqlite3.Connection,
    commit: Commit,
    relations: Iterable[StoredRows],
    old: int,
    opened: Mapping[str, int],
) -> None:
    """Give rows that were written since the store was opened dots of the new incarnation.

    Removals since then are told again by its vector, which moves wherever the old one's had.
    """
    ledger = commit.ledger
    assert ledger is not None
    for stored in relations:
        partition = ledger.partition(connection, stored.stream)
        since = opened.get(stored.stream, 0)
        moved = connection.execute(
            f"UPDATE {VECTORS} SET seen = ?, changed = ? WHERE partition = ? AND site = ? AND seen > ?",
            (since, commit.version, partition.number, old, since),
        ).rowcount
        if not moved:
            continue
        base, low, high = ledger.base(partition), dot(old, since), dot(old + 1, 0)
        for table in stored.tables:  # numbers stay as far apart as they were, above those of the new one
            connection.execute(
                f"UPDATE {table} SET dot = dot - ? + ?, version = ? WHERE dot > ? AND dot < ?",
                (low, base, commit.version, low, high),
            )
        ledger.advance(connection, partition, _used(connection, stored, base), commit.version)
        connection.execute(f"UPDATE {PARTITIONS} SET summed = 0 WHERE number = ?", (partition.number,))
        commit.grown = True


def _used(connection: sqlite3.Connection, stored: StoredRows, base: int) -> int:
    """How many numbers lie between the dot before the first and the last one."""
    last = max(
        connection.execute(
            f"SELECT ifnull(max(dot), ?) FROM {table} WHERE dot > ? AND dot >> 40 = ? >> 40", (base,) * 3
        ).fetchone()[0]
        for table in stored.tables
    )
    return int(last) - base
