"""Certifying markers: which windows are final here.

A marker may come before the events that it speaks of, by a site that does not host them. It counts when this
site's vector of the relation covers the marker's. That is decided in the transaction that applies a cut, and
stored as rows of `everview_progress`, which views join with: so their circuits stay functions of tables.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from everview.engines.sqlite.engine import OnChange
from everview.engines.sqlite.relations.commit import Commit
from everview.language.relations import Semantics
from everview.language.windowed import CLOSED, PROGRESS
from everview.replication.knowledge import Knowledge
from everview.replication.markers import OPENING, Marker, read_markers
from everview.replication.membership import covers
from everview.replication.state import Awaited

_LOG = logging.getLogger("everview")


def certify(
    knowledge: Knowledge, connection: sqlite3.Connection, commit: Commit, on_change: OnChange | None
) -> int:
    """Bring the progress of all sources up to what is here; return of how many that was news."""
    engine = knowledge.store.engine
    if CLOSED not in engine.relations:
        return 0
    table = engine.relations[PROGRESS].table.name
    before = {(s, r): until for s, r, until in connection.execute(f"SELECT c0, c1, c2 FROM {table}")}
    news = []
    markers = list(read_markers(engine, connection))
    opened = {marker.source: marker.vector for marker in markers if marker.relation == OPENING}
    for marker in markers:
        relation = engine.program.relations.get(marker.relation)
        if relation is None or marker.relation not in engine.relations or marker.until is None:
            continue
        place = (marker.source, marker.relation)
        until = _certified(knowledge, connection, marker, opened.get(marker.source, {}))
        if marker.source in relation.sources and until is not None and until > before.get(place, until - 1):
            news.append((*place, until))
    if news:
        engine.insert(connection, PROGRESS, news, commit, on_change)
    return len(news)


def _certified(
    knowledge: Knowledge, connection: sqlite3.Connection, marker: Marker, opened: Mapping[str, int]
) -> int | None:
    """How far a source is complete here.

    While a marker waits for its events, later ones take its place in the table; should their events always
    be on the way, none would ever count. So the first that waits is remembered until it does.
    """
    state, place = knowledge.state, f"{marker.relation} {marker.source}"
    check = Check(knowledge, connection, marker.relation, marker.source, opened)
    if check.covers(marker.vector):
        state.awaited.pop(place, None)
        return marker.until
    assert marker.until is not None
    first = state.awaited.get(place)
    if first is None:
        state.awaited[place] = Awaited(marker.until, marker.vector)
        return None
    if not check.covers(first.vector):
        return None
    state.awaited[place] = msgspec.structs.replace(first, until=marker.until, vector=marker.vector)
    return first.until


@dataclass(frozen=True, slots=True)
class Check:
    """What is here of a source's events of one relation."""

    knowledge: Knowledge
    connection: sqlite3.Connection
    relation: str
    source: str
    opened: Mapping[str, int]
    """The incarnations that are known to have spoken for the source one after the other."""

    def covers(self, vector: Mapping[str, int]) -> bool:
        """Whether all events of a marker are here, and none of an incarnation that nobody speaks of.

        That would be another device which calls itself the same: what belongs to a window is then uncertain,
        and stays provisional.
        """
        own = self.knowledge.membership.own(self.relation).vector
        if not covers(own, vector):
            return False
        names = self.knowledge.state.names
        unknown = [inc for inc in own if names.get(inc) == self.source and inc not in {*vector, *self.opened}]
        strangers = [inc for inc in unknown if self._has_written(inc)]
        if strangers and f"{self.relation} {self.source}" not in self.knowledge.state.awaited:
            _LOG.warning(
                "%s was written as %s by %s, of which the markers do not know: are two devices called so?",
                self.relation,
                self.source,
                ", ".join(strangers),
            )
        return not strangers

    def _has_written(self, incarnation: str) -> bool:
        stored = self.knowledge.store.engine.relations[self.relation]
        bag = stored.relation.semantics is Semantics.BAG
        where = "w > 0 AND isite = ?" if bag else f"{stored.partial} AND site = ?"
        number = self.knowledge.numbers.get(incarnation, -1)
        found = f"SELECT 1 FROM {stored.travelling} WHERE {where} LIMIT 1"
        return self.connection.execute(found, (number,)).fetchone() is not None
