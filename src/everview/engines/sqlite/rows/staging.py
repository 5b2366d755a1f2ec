"""Staging: how rows get from Python into a temporary table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from everview.engines.sqlite.integers import is_same

Columns = Sequence[Sequence[Any]]
"""Rows, column by column, all of one length."""

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


def stage_columns(
    connection: sqlite3.Connection, table: str, columns: Columns, weight: int | None = None
) -> None:
    """Put rows, given as columns, into a temporary table, where a weight is given all with that weight."""
    if weight is None:
        pour(connection, lambda values: f"INSERT INTO {table} {values}", columns)
    else:
        pour(connection, lambda values: f"INSERT INTO {table} SELECT *, {weight} FROM ({values})", columns)


def pour(connection: sqlite3.Connection, sql: Callable[[str], str], columns: Columns, *same: Any) -> int:
    """Run a statement over rows that are nowhere yet: `sql` makes it of a VALUES clause, a chunk at a time.

    The rows are given as columns, and none is ever made of them here: their cells are laid out for SQLite by
    slices. The values of `same` stand at the beginning of every row. Returns how many rows the statements
    wrote. What is the same in all rows is bound once for all.
    """
    return sum(cursor.rowcount for cursor in poured(connection, sql, columns, *same))


def poured(
    connection: sqlite3.Connection, sql: Callable[[str], str], columns: Columns, *same: Any
) -> Iterator[sqlite3.Cursor]:
    """Run a statement as `pour` does; yield the cursor of each chunk."""
    count = len(columns[0]) if columns else 0
    once: list[Any] = list(same)
    terms = [f"?{number}" for number in range(1, len(same) + 1)]
    varying = []
    for column in columns:
        if is_same(column):
            once.append(column.least)
            terms.append(f"?{len(once)}")
        elif column and column[0] is None and column.count(None) == count:
            terms.append("NULL")
        else:
            varying.append(column)
            terms.append("")
    row, width, first = tuple(terms), len(varying), len(once)
    chunk = max(1, min(_CHUNK, 30_000 // max(len(columns), 1)))
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        bound: list[Any] = [*once, *([None] * ((stop - start) * width))]
        for place, column in enumerate(varying, first):
            bound[place::width] = column[start:stop]
        yield connection.execute(sql(_laid_out(row, first, stop - start)), bound)


def _chunks(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    chunk = max(1, min(_CHUNK, 30_000 // max(len(rows[0]), 1))) if rows else 1
    for start in range(0, len(rows), chunk):
        yield rows[start : start + chunk]


@lru_cache(maxsize=1024)
def _laid_out(terms: tuple[str, ...], first: int, count: int) -> str:
    """Rows of these terms, and of parameters after the `first` where there is none.

    They have numbers in the first row alone: where one stands without, it follows the greatest before it.
    """
    numbers = iter(range(first + 1, first + 1 + len(terms)))
    numbered = ", ".join(term or f"?{next(numbers)}" for term in terms)
    plain = ", ".join(term or "?" for term in terms)
    return f"VALUES {', '.join([f'({numbered})', *[f'({plain})'] * (count - 1)])}"


@lru_cache(maxsize=1024)
def _values(width: int, count: int, *, after: tuple[str, ...] = ()) -> str:
    one = f"({', '.join([*['?'] * width, *after])})"
    return f"VALUES {', '.join([one] * count)}"
