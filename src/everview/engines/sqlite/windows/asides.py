"""Asides: what stores of a source wrote that were not in charge, in windows that were closed without it.

It goes into `everview_late_…`, where late events are. A row may stand there twice, when two find out at once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from everview.engines.sqlite.rows.dots import dot, site_of
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.windows.markers import (
    OPENING,
    Marker,
    Vector,
    cell,
    drop,
    openings,
    put,
    read_markers,
    text_of,
    vector_of,
)
from everview.engines.sqlite.windows.progress import strangers
from everview.engines.sqlite.writing import Writing
from everview.language.relations import Relation
from everview.language.windowed import CLOSED, PROGRESS, late_name

__all__ = ["Asides", "mark"]

_LOG = logging.getLogger("everview")


def mark(store: Store, writing: Writing, relation: str, until: int, vector: Vector | None = None) -> None:
    """Write a marker of this source: over what is here of it, or over what it said before."""
    name = store.name
    if vector is None:
        vector = vector_of(store.writer.connection, relation, name)
    own = {store.incarnation: vector.get(store.incarnation, 0)}
    put(store, writing, CLOSED, [(name, relation, until, text_of({**vector, **own}))])
    put(store, writing, PROGRESS, [(name, relation, until)])  # its own events are all here


class Asides:
    """Takes events of this source out of its windows."""

    def __init__(self, store: Store, writing: Writing, relations: Mapping[str, Relation]) -> None:
        self._store, self._writing, self._relations = store, writing, relations
        markers = read_markers(store, store.name)
        self._at_opening = {marker.relation: marker for marker in markers if marker.is_shown}

    def set_strangers_aside(self, marker: Marker) -> None:
        """Set all aside that a window of a marker was closed without."""
        stored = self._store.engine.shares[marker.relation]
        self._set_aside(marker.relation, strangers(self._store.writer.connection, stored, marker))

    def step_aside(self) -> None:
        """Set events of this source aside that its windows were closed without.

        That is for who has written them, if another speaks by now, and for who speaks.
        """
        store = self._store
        markers = list(read_markers(store, store.name))
        opening = openings(markers).get(store.name)
        if opening is None:
            return
        for marker in markers:
            if marker.relation not in self._relations or marker.writer != opening.opener:
                continue
            stored = store.engine.shares[marker.relation]
            found = strangers(store.writer.connection, stored, marker)
            if marker.writer != store.incarnation:
                found = [one for one in found if site_of(one) == store.ledger.site]
            self._set_aside(marker.relation, found)

    def take_back(self, relation: Relation, rows: Sequence[Sequence[Any]], until: int) -> list[Sequence[Any]]:
        """Put events aside that others have refused; return what lies in windows that are open."""
        place = relation.columns.index(str(relation.event_time))
        if late := [(*row, "insert") for row in rows if row[place] < until]:
            put(self._store, self._writing, late_name(relation.name), late)
        return [row for row in rows if row[place] >= until]

    def rewound(self) -> None:
        """The store went back unnoticed: what it wrote since it was opened, it wrote without knowing better.

        Its events go aside, and its markers become what they were. Rows that it deleted stay deleted.
        """
        store, site = self._store, self._store.ledger.site
        connection = store.writer.connection
        low, high = dot(site, 0), dot(site + 1, 0)
        for name in self._relations:
            stored = store.engine.shares[name]
            owner = cell(stored, stored.relation.owner)
            rows = connection.execute(
                f"SELECT dot FROM {stored.table.name} "
                f"WHERE dot > ? AND dot < ? AND {owner} = ? AND {stored.is_shown()}",
                (low, high, store.name),
            )
            self._set_aside(name, [one for (one,) in rows])
        for relation in (OPENING, *self._relations):
            own = (m for m in read_markers(store, store.name) if m.relation == relation)
            if any(marker.writer == store.incarnation for marker in own):
                self._mark_again(relation)

    def _mark_again(self, relation: str) -> None:
        store, name = self._store, self._store.name
        before = self._at_opening.get(relation)
        closed, progress = store.engine.shares[CLOSED], [(name, relation, None)]
        connection = store.writer.connection
        if relation != OPENING:
            store.engine.delete(connection, PROGRESS, progress, self._writing.commit, self._writing.collect)
        if before is None:
            low, high = dot(store.ledger.site, 0), dot(store.ledger.site + 1, 0)
            rows = " UNION ALL ".join(f"SELECT dot, c0, c1 FROM {table}" for table in closed.tables)
            gone = connection.execute(
                f"SELECT dot FROM ({rows}) WHERE dot > ? AND dot < ? AND c0 = ? AND c1 = ?",
                (low, high, name, relation),
            )
            drop(store, self._writing, closed, [one for (one,) in gone])
        elif before.until is None:
            put(store, self._writing, CLOSED, [(name, relation, None, text_of(before.vector))])
        else:
            mark(store, self._writing, relation, before.until, before.vector)

    def _set_aside(self, relation: str, dots: Sequence[int]) -> None:
        """Take events out, and keep them where late ones are."""
        if not dots:
            return
        store, stored = self._store, self._store.engine.shares[relation]
        connection = store.writer.connection
        listed = ", ".join(stored.table.columns)
        tables = " UNION ALL ".join(f"SELECT {listed}, dot FROM {table}" for table in stored.tables)
        wanted = f"dot IN ({', '.join(map(str, dots))})"
        rows = connection.execute(f"SELECT {listed}, 'insert' FROM ({tables}) WHERE {wanted}").fetchall()
        put(store, self._writing, late_name(relation), rows)
        drop(store, self._writing, stored, dots)
        _LOG.warning(
            "%d rows of %s were written by a store that was not in charge of its source; they are in %s",
            len(dots),
            relation,
            late_name(relation),
        )
