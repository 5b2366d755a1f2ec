"""Markers: how far a source has closed its windows, as rows of `everview_closed`.

A marker says that all that a source has written of a relation with event times before `until` is within its
vector: its own commits, of every incarnation that it had. The row of the relation "" is an *opening*: the
incarnation that speaks for the source from then on, with the commit in which it said so, and those that spoke
for it before, with 0.
"""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.scalars.storage import load_value
from everview.language.types import TIMESTAMP
from everview.language.windowed import CLOSED

OPENING = ""
"""Stands for the relation where a marker is an opening."""


@dataclass(frozen=True, slots=True)
class Marker:
    """One row; `until` is in microseconds, and None in an opening."""

    source: str
    relation: str
    until: int | None
    vector: dict[str, int]

    @property
    def opener(self) -> str:
        """Who has opened, of an opening."""
        return next((incarnation for incarnation, commit in self.vector.items() if commit), "")

    @property
    def moment(self) -> dt.datetime | None:
        """What it has closed up to."""
        return None if self.until is None else moment_of(self.until)


def moment_of(microseconds: int) -> dt.datetime:
    """A stored TIMESTAMP as people have it."""
    found: dt.datetime = load_value(microseconds, TIMESTAMP)
    return found


def text_of(vector: Mapping[str, int]) -> str:
    """A vector as it is stored."""
    return json.dumps(vector, sort_keys=True, separators=(",", ":"))


def read_markers(
    engine: Engine, connection: sqlite3.Connection, source: str | None = None
) -> Iterator[Marker]:
    """Yield the markers that are here, of one source or of all; what is none is passed over."""
    closed = engine.relations[CLOSED]
    where = "" if source is None else " AND c0 = ?"
    rows = connection.execute(
        f"SELECT c0, c1, c2, c3 FROM {closed.table.name} WHERE {closed.partial}{where}",
        () if source is None else (source,),
    ).fetchall()
    for name, relation, until, text in rows:
        vector = _vector(text)
        if vector is not None:
            yield Marker(name, relation, until, vector)


def _vector(text: str) -> dict[str, int] | None:
    """What a vector says; None if somebody has written another text there."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(isinstance(commit, int) for commit in found.values()):
        return None
    return found
