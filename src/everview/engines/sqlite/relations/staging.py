"""Staging: how rows get from Python into a temporary table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from everview.engines.sqlite.parts import Row

_CHUNK = 250
"""Rows in one INSERT … VALUES: less than half the time a row of `executemany` takes."""


def stage(
    connection: sqlite3.Connection, table: str, rows: Sequence[Sequence[Any]], weight: int | None = None
) -> None:
    """Put rows into a temporary table, where a weight is given all with that weight at the end."""
    more = () if weight is None else (str(weight),)
    if len(rows) == 1:
        connection.execute(f"INSERT INTO {table} {_values(len(rows[0]), 1, after=more)}", rows[0])
        return
    for part in _chunks(rows):
        sql = f"INSERT INTO {table} {_values(len(part[0]), len(part), after=more)}"
        connection.execute(sql, list(chain.from_iterable(part)))


def pour(
    connection: sqlite3.Connection, sql: Callable[[str], str], rows: Sequence[Sequence[Any]], *same: Any
) -> int:
    """Run a statement over rows that are nowhere yet: `sql` makes it of a VALUES clause, a chunk at a time.

    The values of `same` stand at the beginning of every row. Returns how many rows the statements wrote.
    """
    marks = tuple(f"?{number}" for number in range(1, len(same) + 1))
    total = 0
    for part in _chunks(rows):
        values = _values(len(part[0]), len(part), before=marks)
        total += connection.execute(sql(values), [*same, *chain.from_iterable(part)]).rowcount
    return total


def each_once(rows: Sequence[Row], key: Callable[[Row], Any], place: int) -> Sequence[Row]:
    """Of several rows with one key the one with the greatest value in a place; an honest sender has but one.

    `key` is an `itemgetter`: looking for keys that come twice is all that is done to most rows.
    """
    if len(set(map(key, rows))) == len(rows):
        return rows
    greatest: dict[Any, Row] = {}
    for row in rows:
        held = greatest.setdefault(key(row), row)
        if row[place] > held[place]:
            greatest[key(row)] = row
    return list(greatest.values())


def _chunks(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    chunk = max(1, min(_CHUNK, 30_000 // max(len(rows[0]), 1))) if rows else 1
    for start in range(0, len(rows), chunk):
        yield rows[start : start + chunk]


@lru_cache(maxsize=1024)
def _values(width: int, count: int, *, before: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> str:
    one = f"({', '.join([*before, *['?'] * width, *after])})"
    return f"VALUES {', '.join([one] * count)}"
