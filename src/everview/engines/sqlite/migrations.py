"""The file's format: its number, and one step from each number to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

FORMAT = 1
"""The format that this version writes. A change of it leaves a small file in `tests/prior_stores/`."""

MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""Format n → what turns a file of format n into one of n + 1."""


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a file up to the current format, step by step, each in a transaction of its own."""
    while version < FORMAT:
        connection.execute("BEGIN IMMEDIATE")
        try:
            MIGRATIONS[version](connection)
            version += 1
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
