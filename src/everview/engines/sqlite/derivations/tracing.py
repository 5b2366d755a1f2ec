"""Tracing: which ids a row of a received core was made from, and what is known of the tuples behind them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from everview.engines.sqlite.derivations.received import Received
from everview.engines.sqlite.ids import joined
from everview.engines.sqlite.scalars.storage import store_rows

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A tuple that a derivation names: of its values those that the derived row shows, and who wrote it."""

    id: bytes
    relation: str
    values: Mapping[str, Any]
    site: int | None


def derivations_of(connection: sqlite3.Connection, received: Received, row: Row) -> Iterator[list[Named]]:
    """Yield, for every derivation of a row that counts, the tuples by position."""
    schema = received.core.schema
    (stored,) = store_rows([field.type for field in schema], [row])
    for part in received.branches:
        same = "".join(f" AND {cell} IS ?" for cell in part.cells)
        found = connection.execute(
            f"SELECT {', '.join(part.numbers)} FROM {part.table} WHERE {part.partial}{same}", tuple(stored)
        )
        for numbers in found.fetchall():
            named = []
            for position, (at, number) in enumerate(zip(part.positions, numbers, strict=True)):
                id_ = connection.execute(
                    f"SELECT {', '.join(at.halves)} FROM {at.ids} WHERE {at.number} = ?", (number,)
                ).fetchone()
                values = {
                    at.relation.columns[column]: row[shown]
                    for shown, column in part.branch.known_columns(position)
                }
                origin = at.origin(connection, number)
                named.append(
                    Named(joined(*id_), at.relation.name, values, None if origin is None else origin[0])
                )
            yield named
