"""Rows that have gone, and stay for a while, so that others can be told of them."""

from __future__ import annotations

import sqlite3

KEPT = 1_000
"""So many rows that have gone are kept, and as many as there are others: to tell of more is to tell all."""


def forget_gone(
    connection: sqlite3.Connection, table: str, head: str, gone: str, version: str, keep: int | None
) -> int:
    """Forget rows that have gone, but for the last few, and raise the floor in `head`; return how many went.

    `gone` says which have, and `version` when. `keep` says how many stay, else it is as many as there are
    others and some more. Who has read less than the floor is told everything.
    """
    if keep is None:
        there = f"SELECT count(*) FROM {table} WHERE NOT ({gone})"
        keep = int(connection.execute(there).fetchone()[0]) + KEPT
    latest = f"SELECT {version} FROM {table} WHERE {gone} ORDER BY {version} DESC LIMIT 1 OFFSET ?"
    oldest = connection.execute(latest, (keep,)).fetchone()
    if oldest is None:
        return 0
    connection.execute(f"UPDATE {head} SET floor = max(floor, ?)", oldest)
    return connection.execute(f"DELETE FROM {table} WHERE {gone} AND {version} <= ?", oldest).rowcount
