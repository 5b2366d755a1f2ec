"""Closing windows: the door of a windowed relation at its owner's store, and what happens as cuts come.

What a source writes or deletes in a window that it has closed goes aside, into `everview_late_…`. So others
never have to sort anything out. What stores wrote that were not in charge (`charge`) goes aside when they, or
who is in charge, find out.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.serving import Rows
from everview.engines.sqlite.scalars.storage import store_value
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.windows.asides import Asides, mark
from everview.engines.sqlite.windows.charge import Charge
from everview.engines.sqlite.windows.markers import Marker, cell, moment_of, read_markers
from everview.engines.sqlite.windows.progress import Progress
from everview.engines.sqlite.writing import Row, Writing
from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.types import TIMESTAMP
from everview.language.windowed import CLOSED, PARTICIPANTS, late_name, windowed_relations

__all__ = ["TOO_LATE", "Closing", "checked_moment"]

_LOG = logging.getLogger("everview")

TOO_LATE = "its window was closed without it"
"""Why an event is refused."""


class Closing:
    """Lets events in, or aside, and writes markers; all within the transaction that is open."""

    def __init__(self, store: Store, writing: Writing) -> None:
        self._store, self._writing = store, writing
        self.charge, self.progress = Charge(store, writing), Progress(store, writing)
        self._relations = {
            name: relation
            for name, relation in windowed_relations(store.program.relations).items()
            if name in store.engine.shares
        }
        self.asides = Asides(store, writing, self._relations)
        self._taking_part = ""
        """The incarnation that is known to take part."""

    # The door.

    def admit(self, relation: Relation, rows: Sequence[Row], operation: str) -> Sequence[Row]:
        """Put aside what is too late; return the rest."""
        self._check(relation)
        until = self.closed(relation)
        if until is None:
            return rows
        place, limit = relation.columns.index(str(relation.event_time)), moment_of(until)
        late = [(*row, operation) for row in rows if row[place] < limit]
        if not late:
            return rows
        _LOG.warning(
            "%s has closed its windows up to %s; of the %d given for %s, %d went into %s",
            self._store.name,
            limit.isoformat(),
            len(rows),
            relation.name,
            len(late),
            late_name(relation.name),
        )
        self._writing.insert(self._store.program.relations[late_name(relation.name)], late)
        return [row for row in rows if row[place] >= limit]

    def advance(self, relation: Relation, rows: Sequence[Row]) -> None:
        """Close by the source's own watermark: its greatest event time, less the lateness."""
        if relation.lateness is None or not rows:
            return
        place = relation.columns.index(str(relation.event_time))
        self._close(relation, max(_stored(row[place]) for row in rows) - relation.lateness)

    def _check(self, relation: Relation) -> None:
        name = self._store.name
        if name not in relation.sources:
            raise DataError(
                f"{relation.name} has the sources {', '.join(relation.sources)}, and this site is {name!r}; "
                "only a declared source writes into a windowed relation",
                relation=relation.name,
                column=relation.owner,
                value=name,
                expected=", ".join(relation.sources),
            )
        self.charge.require()
        if self.charge.is_open:  # all have heard
            self._begin()
        self._take_part()

    # Closing.

    def closed(self, relation: Relation) -> int | None:
        """How far this source has closed a relation, in microseconds; None if it has not."""
        found = [m.until for m in self._own(relation.name) if m.until is not None]
        return max(found, default=None)

    def _own(self, relation: str) -> list[Marker]:
        return [m for m in read_markers(self._store, self._store.name) if m.relation == relation]

    def close(self, until: dt.datetime, relations: Sequence[str] | None) -> int:
        """Close the windows of relations up to a moment; return of how many that was news."""
        own = [name for name, one in self._relations.items() if self._store.name in one.sources]
        wanted = own if relations is None else relations
        if isinstance(wanted, str) or not wanted:
            raise DataError(
                f"there is nothing to close: {self._store.name!r} is a source of no windowed relation here, "
                "or relations is not a list of names"
            )
        news = 0
        for name in wanted:
            relation = self._relations.get(name)
            if relation is None:
                raise DataError(f"{name} is not a windowed relation that is hosted here", relation=name)
            self._check(relation)
            news += self._close(relation, _stored(until))
        return news

    def _close(self, relation: Relation, until: int) -> bool:
        before = self.closed(relation)
        if before is not None and until <= before:
            return False
        mark(self._store, self._writing, relation.name, until)
        return True

    # Who speaks.

    def take_charge(self, *, alone: bool) -> bool:
        """Open, if that is not done; return whether this store is in charge."""
        self._take_part()
        self.charge.open()
        if self.charge.is_open and (alone or self.charge.reason() is None):
            self._begin()
        return self.charge.reason() is None

    def _begin(self) -> None:
        """Speak for the source, and make its markers anew.

        Whoever is in charge has all that anybody had. So what is not here of the events of a marker was lost
        with the store that wrote it: nobody has it, and nobody went by that marker.
        """
        self.charge.begin()
        for name, relation in self._relations.items():
            for marker in self._own(name):
                self.asides.set_strangers_aside(marker)
            until = self.closed(relation)
            if until is not None:
                mark(self._store, self._writing, name, until)

    def renewed(self, old: str, *, is_gone: bool) -> None:
        """Take part as another from now on; the store as it was is not to be waited for if it is gone."""
        if is_gone:
            self.charge.leave(old)
        self._take_part()

    def give_up(self, incarnation: str) -> None:
        """Wait no longer for a store, if it takes part. It takes part again when it comes back."""
        self.charge.leave(incarnation)

    def as_one(self, streams: Iterable[str]) -> set[str]:
        """Return streams, and what goes back in time with them: events and markers do so together."""
        found, ours = set(streams), {CLOSED, *self._relations}
        return found | ours if found & ours else found

    def rewound(self) -> None:
        """The store went back unnoticed: what it has written since it was opened goes aside."""
        self.asides.rewound()
        self._take_part()

    # What comes from others.

    def meet(self) -> None:
        """Take part, before anything is said."""
        if self._taking_part != self._store.incarnation:
            with self._writing.transaction(follows=True):
                self._take_part()
            self._taking_part = self._store.incarnation

    def _take_part(self) -> None:
        if self._taking_part != self._store.incarnation:
            self.charge.hear()

    def step_aside(self) -> None:
        """Set events of this source aside that its windows were closed without."""
        self.asides.step_aside()

    def take_back(self, stored: StoredRows, rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        """Put events of this source aside that others have refused; return what may be written again."""
        relation = self._relations.get(stored.stream)
        until = None if relation is None else self.closed(relation)
        return list(rows) if until is None else self.asides.take_back(stored.relation, rows, until)

    def too_late(self, stored: StoredRows, rows: Rows, had: Mapping[int, int]) -> list[int]:
        """Return the dots of events that have come, beyond a vector, and may not count any more."""
        return self.progress.too_late(stored, rows, had)

    def heard(self, streams: Iterable[str]) -> None:
        """A cut was applied that has told of these streams: see what follows from it, in the same commit."""
        told = set(streams)
        if not told & {CLOSED, PARTICIPANTS, *self._relations}:
            return
        if told & {CLOSED, PARTICIPANTS}:
            self.charge.hear()
        self.asides.step_aside()
        self.progress.advance()

    # What there is to say.

    def status(self) -> dict[str, Any]:
        """How far each source has closed each relation, and is final here; what came too late here."""
        store, connection = self._store, self._store.writer.connection
        found: dict[str, Any] = {"in_charge": self.charge.reason() is None, "relations": {}}
        markers = {(m.relation, m.source): m.moment for m in read_markers(store) if m.is_shown}
        progress = self.progress.read()
        for name, relation in self._relations.items():
            late = store.engine.rows_sql(late_name(name))
            owner = cell(store.engine.shares[name], relation.owner)
            (count,) = connection.execute(
                f"SELECT ifnull(sum(w), 0) FROM ({late}) WHERE {owner} = ?", (store.name,)
            ).fetchone()
            found["relations"][name] = {
                "late_rows": count,
                "sources": {
                    source: {
                        "closed": _text(markers.get((name, source))),
                        "final": _text(_moment(progress.get((source, name)))),
                    }
                    for source in relation.sources
                },
            }
        return found


def _stored(moment: dt.datetime) -> int:
    return int(store_value(moment, TIMESTAMP))


def _moment(microseconds: int | None) -> dt.datetime | None:
    return None if microseconds is None else moment_of(microseconds)


def _text(moment: dt.datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def checked_moment(until: Any) -> dt.datetime:
    """A moment that somebody gave; a naive one means UTC."""
    if not isinstance(until, dt.datetime):
        raise DataError(f"windows close at a datetime, not at {until!r}", value=until, expected="TIMESTAMP")
    return until.replace(tzinfo=dt.UTC) if until.tzinfo is None else until.astimezone(dt.UTC)
