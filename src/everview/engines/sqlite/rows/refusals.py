"""Refused rows: what a store took and undid, and what of its own others have undone.

Of rows that have an owner only those count that the owner's site wrote. A row of anybody else is taken with
its cut, removed again in the same commit, and never shown. All replicas then agree, also the sender's: it
gets the removal as any, and is told in the answer which of its rows were refused, and why.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from everview.engines.sqlite.circuits.names import column, internal
from everview.engines.sqlite.rows.base import GONE, StoredRows
from everview.engines.sqlite.rows.dots import site_of
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.rows.serving import Rows

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


def not_the_owners(connection: sqlite3.Connection, stored: StoredRows, rows: Rows) -> list[int]:
    """Return the dots of rows from elsewhere that their owners have not written."""
    owner = stored.relation.owner
    if owner is None:
        return []
    names = dict(connection.execute(f"SELECT number, name FROM {SITES}"))
    owners = rows.columns[stored.relation.columns.index(owner)]
    return [dot for dot, name in zip(rows.dots, owners, strict=True) if names.get(site_of(dot)) != name]


def taken_from_owner(
    connection: sqlite3.Connection,
    stored: StoredRows,
    name: str,
    had: Mapping[int, int],
    vector: Mapping[int, int],
) -> list[tuple[Any, ...]]:
    """Return rows that are named in `GONE`, are owned here, and were not removed by their owner.

    They were not if no store of the owner's name has written anything that is new in the cut. Only the
    owner can write them again: anybody else's row would be refused.
    """
    owner = stored.relation.owner
    if owner is None:
        return []
    mine = (site for (site,) in connection.execute(f"SELECT number FROM {SITES} WHERE name = ?", (name,)))
    if any(vector.get(site, 0) > had.get(site, 0) for site in mine):
        return []
    cell = column(stored.relation.columns.index(owner))
    listed = ", ".join(f"r.{one}" for one in stored.table.columns)
    return connection.execute(
        f"SELECT {listed} FROM {GONE} AS g CROSS JOIN {stored.table.name} AS r ON r.dot = g.dot "
        f"WHERE r.{cell} = ? AND {stored.is_shown('r')}",
        (name,),
    ).fetchall()


def without_successor(
    connection: sqlite3.Connection, stored: StoredRows, rows: Sequence[Sequence[Any]]
) -> list[Sequence[Any]]:
    """Return those of some rows whose keys have no row now; another owner's row is its own affair."""
    if not stored.relation.key:
        return list(rows)
    places = stored.relation.key_positions
    same = " AND ".join(f"{column(place)} IS ?" for place in places)
    sql = f"SELECT 1 FROM {stored.table.name} WHERE {same}"
    return [row for row in rows if connection.execute(sql, [row[at] for at in places]).fetchone() is None]


def note_refused(
    connection: sqlite3.Connection, stored: StoredRows, dots: Iterable[int], why: str, by: str, now_us: int
) -> dict[int, str]:
    """Remember rows that are held under these dots as refused; return what they say, by dot."""
    listed = ", ".join(stored.table.columns)
    rows = " UNION ALL ".join(f"SELECT {listed}, dot FROM {table}" for table in stored.tables)
    said: dict[int, str] = {}
    for dot in list(dots)[:KEPT]:
        found = connection.execute(
            f"SELECT r.*, s.name FROM ({rows}) AS r JOIN {SITES} AS s ON s.number = r.dot >> 40 "
            "WHERE r.dot = ?",
            (dot,),
        ).fetchone()
        if found is not None:
            *cells, _, writer = found
            said[dot] = text_of(stored, cells)
            note_row(connection, Refused(stored.stream, said[dot], why, writer, by, now_us))
    return said


def note_row(connection: sqlite3.Connection, row: Refused) -> None:
    """Remember a row, held or not, as refused; of many the last."""
    connection.execute(
        f"INSERT INTO {REFUSED} (stream, row, why, writer, refused_by, noticed_us) VALUES (?, ?, ?, ?, ?, ?)",
        row,
    )
    connection.execute(f"DELETE FROM {REFUSED} WHERE number <= (SELECT max(number) FROM {REFUSED}) - {KEPT}")


def text_of(stored: StoredRows, cells: Sequence[Any]) -> str:
    """Return a row as people read it."""
    return json.dumps(dict(zip(stored.relation.columns, cells, strict=False)), default=str)


def refused(connection: sqlite3.Connection) -> Iterator[Refused]:
    """Yield the rows that were refused, the last one first."""
    for row in connection.execute(
        f"SELECT stream, row, why, writer, refused_by, noticed_us FROM {REFUSED} ORDER BY number DESC"
    ):
        yield Refused(*row)
