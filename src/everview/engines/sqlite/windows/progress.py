"""Progress: which windows are final here.

A marker may come before the events that it speaks of, by a site that does not host them. It counts when this
store's vector of the relation covers the marker's. That is decided in the commit that applies a cut, and
becomes a row of `everview_progress`, which views join with: so their circuits stay functions of tables.

From then on all events of these windows are here. One that comes later is of another store that goes by the
source's name, and is refused like any row that its owner has not written.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping

from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.dots import dot, number_of, site_of
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.rows.serving import Rows
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.windows.markers import (
    Marker,
    Vector,
    cell,
    covers,
    openings,
    put,
    read_markers,
    vector_of,
)
from everview.engines.sqlite.writing import Writing
from everview.language.windowed import PROGRESS

__all__ = ["Progress", "strangers"]

_LOG = logging.getLogger("everview")


class Progress:
    """How far each source is complete here."""

    def __init__(self, store: Store, writing: Writing) -> None:
        self._store, self._writing = store, writing
        self._waiting: dict[tuple[str, str], Marker] = {}
        """The first marker of each source and relation that waits for its events.

        Later ones take its place in the table; should their events always be on the way, none would count.
        """
        self._warned: set[tuple[str, str]] = set()

    def read(self) -> dict[tuple[str, str], int]:
        """Return how far sources are complete, by source and relation."""
        table = self._store.engine.relations[PROGRESS].table.name
        rows = self._store.writer.connection.execute(f"SELECT c0, c1, c2 FROM {table}")
        return {(source, relation): until for source, relation, until in rows}

    def advance(self) -> int:
        """Bring the progress of all sources up to what is here; return of how many that was news."""
        before, markers = self.read(), list(read_markers(self._store))
        opened, news = openings(markers), dict[tuple[str, str], int]()
        for marker in markers:
            place = marker.source, marker.relation
            if self._is_one(marker, opened.get(marker.source)):
                until = self._complete(marker, opened.get(marker.source))
                least = news.get(place, before.get(place))
                if until is not None and (least is None or until > least):
                    news[place] = until
        if news:
            put(self._store, self._writing, PROGRESS, [(*place, until) for place, until in news.items()])
        return len(news)

    def _is_one(self, marker: Marker, opening: Marker | None) -> bool:
        """Whether a marker is of who speaks for a source, about a relation that is here."""
        relation = self._store.program.relations.get(marker.relation)
        return (
            relation is not None
            and marker.relation in self._store.engine.shares
            and marker.source in relation.sources
            and marker.until is not None
            and marker.writer in marker.vector
            and (opening is None or opening.opener == marker.writer)
        )

    def _complete(self, marker: Marker, opening: Marker | None) -> int | None:
        """How far a source is complete here by its marker, or by the first that has waited."""
        place = marker.source, marker.relation
        if self._counts(marker, opening):
            self._waiting.pop(place, None)
            return marker.until
        first = self._waiting.setdefault(place, marker)
        if first.writer != marker.writer:  # another speaks by now
            self._waiting[place] = marker
        elif first is not marker and self._counts(first, opening):
            self._waiting[place] = marker
            return first.until
        return None

    def _counts(self, marker: Marker, opening: Marker | None) -> bool:
        """Whether all events of a marker are here, and none of a store of which nobody speaks.

        That would be another device which calls itself the same: what belongs to a window is then uncertain,
        and stays provisional.
        """
        connection = self._store.writer.connection
        if not covers(vector_of(connection, marker.relation), marker.vector):
            return False
        stored = self._store.engine.shares[marker.relation]
        found = strangers(connection, stored, marker)
        place = marker.source, marker.relation
        if found and opening is None and place not in self._warned:
            self._warned.add(place)
            _LOG.warning(
                "%s was written as %s by another store than the one that has closed it: "
                "are two devices called so?",
                marker.relation,
                marker.source,
            )
        return not found

    def too_late(self, stored: StoredRows, rows: Rows, had: Mapping[int, int]) -> list[int]:
        """Return the dots of events that have come, were not seen before, and whose windows are final here.

        Events in its own source's name a store does not refuse: it sets them aside.
        """
        relation = stored.relation
        if relation.event_time is None or relation.owner is None:
            return []
        table = self._store.engine.relations[PROGRESS].table.name
        final = dict(
            self._store.writer.connection.execute(
                f"SELECT c0, c2 FROM {table} WHERE c1 = ? AND c0 <> ? AND c2 IS NOT NULL",
                (relation.name, self._store.name),
            )
        )
        owners, times = (
            rows.columns[relation.columns.index(name)] for name in (relation.owner, relation.event_time)
        )
        if not final:
            return []
        return [
            one
            for one, owner, at in zip(rows.dots, owners, times, strict=True)
            if owner in final and at < final[owner] and number_of(one) > had.get(site_of(one), 0)
        ]


def strangers(connection: sqlite3.Connection, stored: StoredRows, marker: Marker) -> list[int]:
    """Return the dots of a source's events in windows that it has closed without them.

    What the marker's own writer has written went by its door, and is not looked at.
    """
    owner, at = cell(stored, stored.relation.owner), cell(stored, stored.relation.event_time)
    seen: Vector = vector_of(connection, stored.stream, marker.source)
    numbers = dict(connection.execute(f"SELECT incarnation, number FROM {SITES} WHERE partition = 0"))
    found: list[int] = []
    for incarnation, last in seen.items():
        first = marker.vector.get(incarnation, 0)
        if incarnation == marker.writer or last <= first:
            continue
        low, high = dot(numbers[incarnation], first), dot(numbers[incarnation], last)
        for table in stored.tables:
            rows = connection.execute(
                f"SELECT dot FROM {table} WHERE dot > ? AND dot <= ? AND {owner} = ? AND {at} < ? "
                f"AND {stored.is_shown()}",
                (low, high, marker.source, marker.until),
            )
            found += [one for (one,) in rows]
    return found
