"""What lies in a store's lattice tables: causal lengths and stamps, which no reader of rows ever sees."""

from __future__ import annotations

import sqlite3
from typing import Any

from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.names import SITES
from everview.engines.sqlite.relations.keyed import KeyedRelation

Row = tuple[Any, ...]


def marks(connection: sqlite3.Connection, engine: Engine, relation: str, since: int = 0) -> set[Row]:
    """Of a set: tuples that end with their causal lengths; those that grew after a commit."""
    stored = engine.relations[relation]
    new = "WHERE version > ?" if since else "WHERE ? = 0"
    return set(connection.execute(f"SELECT {stored.listed}, cl FROM {stored.table.name} {new}", (since,)))


def fingerprint(connection: sqlite3.Connection, engine: Engine, relation: str) -> Row:
    """Of a set: what is another after any change, for a tenth of what reading all of it takes."""
    table = engine.relations[relation].table.name
    found: Row = connection.execute(f"SELECT count(*), total(cl), max(version) FROM {table}").fetchone()
    return found


def lengths(connection: sqlite3.Connection, engine: Engine, relation: str) -> dict[Row, int]:
    """Of a set: tuple → causal length."""
    return {row[:-1]: row[-1] for row in marks(connection, engine, relation)}


def versions(
    connection: sqlite3.Connection, engine: Engine, relation: str
) -> dict[tuple[Row, int, str], tuple[str, Row]]:
    """Of a keyed relation: (key, stamp, incarnation) → what the version says; those from the future too."""
    stored = engine.relations[relation]
    assert isinstance(stored, KeyedRelation)
    places = stored.relation.key_positions
    found = {}
    for table in stored.tables:
        rows = connection.execute(
            f"SELECT {stored.listed}, alive, stamp, (SELECT incarnation FROM {SITES} WHERE number = t.site) "
            f"FROM {table} AS t"
        )
        for *row, alive, stamp, incarnation in rows:
            key = tuple(row[place] for place in places)
            found[key, stamp, incarnation] = ("insert" if alive else "delete", tuple(row))
    return found
