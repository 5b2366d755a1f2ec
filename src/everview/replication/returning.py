"""A source that comes back: events of its own that may not count any more go aside, before others see them.

What a store wrote while it was in an old state, unnoticed, it wrote without knowing what it had closed: that
all goes aside when it is found out, and its markers of that time are forgotten. What a store that joins anew
still had for itself goes aside if whoever was in charge meanwhile has closed without it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

from everview.engines.sqlite.relations import StoredRelation
from everview.engines.sqlite.relations.base import covers
from everview.engines.sqlite.relations.entries import EntriesRelation
from everview.engines.sqlite.writing import Writing
from everview.language.windowed import CLOSED, PROGRESS, late_name
from everview.replication.knowledge import Knowledge
from everview.replication.markers import read_markers

_LOG = logging.getLogger("everview")


def set_aside_since(
    knowledge: Knowledge, connection: sqlite3.Connection, writing: Writing, opened_at: int
) -> None:
    """Undo what was written into windowed relations after a commit; what was inserted goes aside."""
    engine = knowledge.store.engine
    for stored in _windowed(knowledge):
        if isinstance(stored, EntriesRelation):
            where = f"e.isite = {knowledge.store.number} AND e.iseq > {opened_at} AND e.w > 0"
        else:
            where = f"r.site = 0 AND r.version > {opened_at}"
        _set_aside(knowledge, connection, writing, stored, where)
    # Markers were told to nobody, and a deletion would count as the latest word about what is closed.
    for name in (CLOSED, PROGRESS):
        if name not in engine.relations:
            continue
        kept = engine.relations[name]
        where = f"r.c0 = {_quoted(knowledge.store.name)} AND r.site = 0 AND r.version > {opened_at}"
        gone = f"FROM {kept.table.name} AS r WHERE {where}"
        connection.execute(f"INSERT INTO {kept.delta} SELECT {kept.listed}, -1 {gone} AND {kept.partial}")
        connection.execute(f"DELETE {gone}")
        engine.propagate(connection, (kept.delta,), writing.collect, shrinks=True)


def set_aside_uncovered(knowledge: Knowledge, connection: sqlite3.Connection, writing: Writing) -> None:
    """Put aside the own events in windows that were closed without them."""
    engine, name = knowledge.store.engine, knowledge.store.name
    until = {m.relation: m for m in read_markers(engine, connection, name)}
    for stored in _windowed(knowledge):
        marker, relation = until.get(stored.relation.name), stored.relation
        if marker is None or marker.until is None:
            continue
        knowledge.lay_out(connection, marker.vector)
        owner, at = (relation.columns.index(str(n)) for n in (relation.owner, relation.event_time))
        entries = isinstance(stored, EntriesRelation)
        known = covers("e", own="", site="isite", seq="iseq") if entries else covers("r")
        where = f"r.c{owner} = {_quoted(name)} AND r.c{at} < {marker.until} AND NOT {known}"
        _set_aside(knowledge, connection, writing, stored, where + (" AND e.w > 0" if entries else ""))


def _windowed(knowledge: Knowledge) -> list[StoredRelation]:
    relations = knowledge.store.engine.relations
    return [stored for stored in relations.values() if stored.relation.event_time is not None]


def _set_aside(
    knowledge: Knowledge, connection: sqlite3.Connection, writing: Writing, stored: StoredRelation, where: str
) -> None:
    engine, name = knowledge.store.engine, stored.relation.name
    columns = ", ".join(f"r.{column}" for column in stored.table.columns)
    rows: Sequence[Any]
    if isinstance(stored, EntriesRelation):
        found = connection.execute(
            f"SELECT {columns}, e.w FROM {stored.entries} AS e "
            f"JOIN {stored.table.name} AS r ON r.id = e.row WHERE {where}"
        ).fetchall()
        rows = [row[:-1] for row in found for _ in range(row[-1])]
    else:
        rows = connection.execute(
            f"SELECT {columns} FROM {stored.table.name} AS r WHERE {where} AND r.{stored.partial}"
        ).fetchall()
    if not rows:
        return
    late = [(*row, "insert") for row in rows]
    engine.insert(connection, late_name(name), late, writing.commit, writing.collect)
    engine.delete(connection, name, rows, writing.commit, writing.collect)
    _LOG.warning(
        "%d rows of %s were written by a store that had been put back or given up; they are in %s",
        len(rows),
        name,
        late_name(name),
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
