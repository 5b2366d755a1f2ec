"""Staging: how rows get from Python into a temporary table."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

_CHUNK = 250
"""Rows in one INSERT … VALUES: less than half the time a row of `executemany` takes."""


def stage(
    connection: sqlite3.Connection, table: str, rows: Sequence[Sequence[Any]], weight: int | None = None
) -> None:
    """Put rows into a temporary table, where a weight is given all with that weight at the end."""
    if len(rows) == 1:
        connection.execute(_values(table, len(rows[0]), 1, weight), rows[0])
        return
    chunk = max(1, min(_CHUNK, 30_000 // max(len(rows[0]), 1))) if rows else 1
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        sql = _values(table, len(part[0]), len(part), weight)
        connection.execute(sql, list(chain.from_iterable(part)))


@lru_cache(maxsize=1024)
def _values(table: str, width: int, count: int, weight: int | None) -> str:
    cells = ["?"] * width + ([] if weight is None else [str(weight)])
    one = f"({', '.join(cells)})"
    return f"INSERT INTO {table} VALUES {', '.join([one] * count)}"
