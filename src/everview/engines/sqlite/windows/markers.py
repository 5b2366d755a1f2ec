"""Markers: how far a source has closed its windows, as rows of `everview_closed`.

A marker says that all that a source has written of a relation with event times before `until` is within its
vector: numbers of every incarnation that the source had. The row of the relation "" is an *opening*: the
incarnation that speaks for the source from then on, and those that spoke for it before.
"""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everview.engines.sqlite.circuits.names import column
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.dots import NUMBERS
from everview.engines.sqlite.rows.ledger import PARTITIONS, SITES, VECTORS
from everview.engines.sqlite.rows.taking import undo
from everview.engines.sqlite.scalars.storage import load_value
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.language.types import TIMESTAMP
from everview.language.windowed import CLOSED

__all__ = ["OPENING", "Marker", "covers", "moment_of", "openings", "read_markers", "vector_of"]

OPENING = ""
"""Stands for the relation where a marker is an opening."""

FORMER, OPENED, CHARGED = 0, 1, 2
"""What an opening says of an incarnation: it spoke before, it wants to speak, it speaks."""

Vector = Mapping[str, int]
"""Incarnation → the last number."""


@dataclass(frozen=True, slots=True)
class Marker:
    """One live row, and who wrote it; `until` is in microseconds, and None in an opening."""

    source: str
    relation: str
    until: int | None
    vector: dict[str, int]
    writer: str
    is_shown: bool
    """Whether it is the one that is shown of its key; others came at the same time."""

    @property
    def opener(self) -> str:
        """Who has opened, of an opening."""
        return next((incarnation for incarnation, state in self.vector.items() if state != FORMER), "")

    @property
    def moment(self) -> dt.datetime | None:
        """What it has closed up to."""
        return None if self.until is None else moment_of(self.until)


def moment_of(microseconds: int) -> dt.datetime:
    """A stored TIMESTAMP as people have it."""
    found: dt.datetime = load_value(microseconds, TIMESTAMP)
    return found


def text_of(said: Mapping[str, Any]) -> str:
    """A vector, or several, as a store has them."""
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


def read_vector(found: object) -> dict[str, int] | None:
    """What a vector says that was stored; None if somebody has written something else there."""
    if not isinstance(found, dict):
        return None
    if not all(type(number) is int and 0 <= number <= NUMBERS for number in found.values()):
        return None
    return found


def read_json(text: str) -> object:
    """What a text says; None if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_markers(store: Store, source: str | None = None) -> Iterator[Marker]:
    """Yield the markers that are here, of one source or of all; what is none is passed over."""
    stored = store.engine.shares[CLOSED]
    table, held = stored.tables
    cells = "SELECT c0, c1, c2, c3, dot"
    both = f"{cells}, 1 AS shown FROM {table} UNION ALL {cells}, 0 FROM {held}"
    rows = store.writer.connection.execute(
        f"SELECT r.c0, r.c1, r.c2, r.c3, s.incarnation, r.shown FROM ({both}) AS r "
        f"JOIN {SITES} AS s ON s.number = r.dot >> 40 WHERE ?1 IS NULL OR r.c0 = ?1 ORDER BY r.dot",
        (source,),
    ).fetchall()
    for name, relation, until, text, writer, shown in rows:
        vector = read_vector(read_json(text))
        if vector is not None:
            yield Marker(name, relation, until, vector, writer, bool(shown))


def openings(markers: Iterable[Marker]) -> dict[str, Marker]:
    """Return who has opened last, by source."""
    return {one.source: one for one in markers if one.relation == OPENING and one.is_shown}


def covers(mine: Vector, theirs: Vector) -> bool:
    """Whether all that a vector speaks of is within another."""
    return all(mine.get(incarnation, 0) >= number for incarnation, number in theirs.items())


def vector_of(connection: sqlite3.Connection, relation: str, name: str | None = None) -> dict[str, int]:
    """Return what is here of a relation, of stores that are called so, or of all."""
    return dict(
        connection.execute(
            f"SELECT s.incarnation, v.seen FROM {PARTITIONS} AS p "
            f"JOIN {VECTORS} AS v ON v.partition = p.number JOIN {SITES} AS s ON s.number = v.site "
            "WHERE p.stream = ?1 AND p.value = '' AND v.seen > 0 AND (?2 IS NULL OR s.name = ?2)",
            (relation, name),
        )
    )


# Writes: within the commit that is under way, which may be that of a cut.


def put(store: Store, writing: Writing, relation: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert stored rows."""
    store.engine.insert(store.writer.connection, relation, rows, writing.commit, writing.collect)
    _count_anew(store, writing, relation)


def drop(store: Store, writing: Writing, stored: StoredRows, dots: Sequence[int]) -> None:
    """Remove rows by their dots."""
    connection = store.writer.connection
    partition = store.ledger.partition(connection, stored.stream)
    undo(connection, writing.commit, stored, partition, dots)
    store.engine.propagate(connection, (stored.delta,), writing.collect, shrinks=True)
    _count_anew(store, writing, stored.stream)


def _count_anew(store: Store, writing: Writing, relation: str) -> None:
    """A digest that was made for the cut of this commit lacks what is written after it."""
    store.writer.connection.execute(
        f"UPDATE {PARTITIONS} SET summed = 0 WHERE stream = ? AND summed >= ?",
        (relation, writing.commit.version),
    )


def cell(stored: StoredRows, name: str | None) -> str:
    """Return the column of a table that has a column of its relation."""
    return column(stored.relation.columns.index(str(name)))
