"""Tracing: which rows a row of a received core was made from, and what is known of them here.

A tuple of a set or an add-wins relation goes by its id. Of a row of another relation only the key's id, or
nothing, is known: it goes by its dot, as an incarnation and a number.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from everview.engines.sqlite.circuits.names import column
from everview.engines.sqlite.derived.hollow import HollowRows
from everview.engines.sqlite.derived.received import ReceivedCore
from everview.engines.sqlite.rows.dots import number_of, site_of
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.scalars.storage import store_rows
from everview.planner.branches import Branch

__all__ = ["Named", "derivations_of"]

Row = tuple[Any, ...]

_ID = struct.Struct("<qq")
"""An id of 16 bytes: two integers in a store, which SQLite compares faster."""


@dataclass(frozen=True, slots=True)
class Named:
    """A row that a derivation names: of its values those that the derived row shows, and who wrote it."""

    id: bytes
    relation: str
    values: Mapping[str, Any]
    site: int


def derivations_of(connection: sqlite3.Connection, received: ReceivedCore, row: Row) -> Iterator[list[Named]]:
    """Yield, for every derivation of a row that is shown, the rows by position."""
    schema = received.core.schema
    (stored,) = store_rows([field.type for field in schema], [row])
    for hollow, payload in received.payloads:
        cells = [column(place) for place in payload.cells]
        flag = [] if payload.flag is None else [column(payload.flag)]
        where = " AND ".join([hollow.is_shown(), *flag, *(f"{cell} IS ?" for cell in cells)])
        found = connection.execute(f"SELECT dot FROM {hollow.table.name} WHERE {where}", tuple(stored))
        for (dot,) in found.fetchall():
            yield [_named(connection, hollow, payload.branch, 0, dot, row)]
    for join in received.joins:
        where = " AND ".join([join.partial, *(f"{cell} IS ?" for cell in join.cells)])
        found = connection.execute(
            f"SELECT {', '.join(join.names)} FROM {join.table} WHERE {where}", tuple(stored)
        )
        for dots in found.fetchall():
            yield [
                _named(connection, hollow, join.branch, position, dot, row)
                for position, (hollow, dot) in enumerate(zip(join.positions, dots, strict=True))
            ]


def _named(
    connection: sqlite3.Connection, hollow: HollowRows, branch: Branch, position: int, dot: int, row: Row
) -> Named:
    base = hollow.reduced.base
    values = {base.columns[at]: row[shown] for shown, at in branch.known_columns(position)}
    if hollow.reduced.names and not base.is_keyed:
        (high, low) = connection.execute(
            f"SELECT c0, c1 FROM {hollow.table.name} WHERE dot = ?", (dot,)
        ).fetchone()
        return Named(_ID.pack(high, low), base.name, values, site_of(dot))
    (incarnation,) = connection.execute(
        f"SELECT incarnation FROM {SITES} WHERE number = ?", (site_of(dot),)
    ).fetchone()
    return Named(bytes.fromhex(incarnation) + number_of(dot).to_bytes(8), base.name, values, site_of(dot))
