"""Refused rows: what a store took and undid, and what of its own others have undone.

Of rows that have an owner only those count that the owner's site wrote. A row of anybody else is taken with
its cut, removed again in the same commit, and never shown. All replicas then agree, also the sender's: it
gets the removal as any, and is told in the answer which of its rows were refused, and why.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from everview.engines.sqlite.circuits.names import column, internal
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.ledger import SITES

REFUSED = internal("refused")
"""The rows that others, or this store, have refused: as JSON, with the reason; the last of them."""

REFUSED_DDL = (
    (
        f"CREATE TABLE {REFUSED} (number INTEGER PRIMARY KEY, stream TEXT NOT NULL, row TEXT NOT NULL, "
        "why TEXT NOT NULL, writer TEXT NOT NULL, refused_by TEXT NOT NULL, noticed_us INTEGER NOT NULL)"
    ),
)

KEPT = 1_000
"""So many refused rows are remembered."""


class Refused(NamedTuple):
    """A row that was refused: where, what, why, who wrote it, who refused it, and when that was noticed."""

    stream: str
    row: str
    why: str
    writer: str
    refused_by: str
    noticed_us: int


def not_the_owners(connection: sqlite3.Connection, stored: StoredRows) -> list[int]:
    """Return the dots of rows that have just been taken and that their owners have not written."""
    owner = stored.relation.owner
    if owner is None:
        return []
    cell = column(stored.relation.columns.index(owner))
    found = connection.execute(
        f"SELECT d.dot FROM {stored.delta} AS d JOIN {SITES} AS s ON s.number = d.dot >> 40 "
        f"WHERE d.dot IS NOT NULL AND d.{cell} IS NOT s.name"
    )
    return [dot for (dot,) in found]


def note_refused(
    connection: sqlite3.Connection, stored: StoredRows, dots: Iterable[int], why: str, by: str, now_us: int
) -> int:
    """Remember rows that are held under these dots as refused; return how many."""
    listed = ", ".join(stored.table.columns)
    rows = " UNION ALL ".join(f"SELECT {listed}, dot FROM {table}" for table in stored.tables)
    count = 0
    for dot in list(dots)[:KEPT]:
        found = connection.execute(
            f"SELECT r.*, s.name FROM ({rows}) AS r JOIN {SITES} AS s ON s.number = r.dot >> 40 WHERE r.dot = ?",
            (dot,),
        ).fetchone()
        if found is not None:
            *cells, _, writer = found
            text = json.dumps(_named(stored, cells), default=str)
            connection.execute(
                f"INSERT INTO {REFUSED} (stream, row, why, writer, refused_by, noticed_us) VALUES (?, ?, ?, ?, ?, ?)",
                (stored.stream, text, why, writer, by, now_us),
            )
            count += 1
    connection.execute(
        f"DELETE FROM {REFUSED} WHERE number <= (SELECT max(number) FROM {REFUSED}) - {KEPT}"
    )
    return count


def _named(stored: StoredRows, cells: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(stored.relation.columns, cells, strict=True))


def refused(connection: sqlite3.Connection) -> Iterator[Refused]:
    """Yield the rows that were refused, the last one first."""
    for row in connection.execute(
        f"SELECT stream, row, why, writer, refused_by, noticed_us FROM {REFUSED} ORDER BY number DESC"
    ):
        yield Refused(*row)
