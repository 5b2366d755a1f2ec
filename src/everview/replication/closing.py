"""Closing windows: the door of a windowed relation at its owner's site.

What its source writes or deletes in a window that it has closed goes aside, into `everview_late_…`. So others
never have to sort anything out. A store that was restored or copied may have forgotten what it closed: it
writes nothing until it is in charge (see `Charge`). `tests/model/windows.py` is the specification.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence
from typing import Any

from everview.engines.sqlite.scalars.storage import store_value
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Row, Writing
from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.types import TIMESTAMP
from everview.language.windowed import CLOSED, PROGRESS, late_name, windowed_relations
from everview.replication.charge import Charge
from everview.replication.knowledge import Knowledge
from everview.replication.markers import Marker, moment_of, read_markers, text_of
from everview.replication.membership import covers

_LOG = logging.getLogger("everview")


class Closing:
    """Lets events in, or aside, and writes markers; all within the transaction that is open."""

    def __init__(self, store: Store, writing: Writing, knowledge: Knowledge) -> None:
        self._store, self._writing, self._knowledge = store, writing, knowledge
        self.charge = Charge(store, writing, knowledge)

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

    # Closing.

    def closed(self, relation: Relation) -> int | None:
        """How far this source has closed a relation, in microseconds; None if it has not."""
        marker = self._marker(relation)
        return None if marker is None else marker.until

    def _marker(self, relation: Relation) -> Marker | None:
        found = read_markers(self._store.engine, self._store.writer.connection, self._store.name)
        return next((marker for marker in found if marker.relation == relation.name), None)

    def restate(self) -> None:
        """Make markers anew whose events were lost with the store that wrote them.

        Whoever is in charge has all that anybody has. So nobody has those events, and nobody went by them.
        """
        for name, relation in windowed_relations(self._store.program.relations).items():
            marker = self._marker(relation) if self._is_here(name) else None
            if marker is not None and marker.until is not None:
                self._close(relation, marker.until)

    def close(self, until: dt.datetime, relations: Sequence[str] | None) -> int:
        """Close the windows of relations up to a moment; return of how many that was news."""
        known = {
            n: r for n, r in windowed_relations(self._store.program.relations).items() if self._is_here(n)
        }
        wanted = (
            [n for n, r in known.items() if self._store.name in r.sources] if relations is None else relations
        )
        if isinstance(wanted, str) or not wanted:
            raise DataError(
                f"there is nothing to close: {self._store.name!r} is a source of no windowed relation here, "
                "or relations is not a list of names"
            )
        news = 0
        for name in wanted:
            relation = known.get(name)
            if relation is None:
                raise DataError(f"{name} is not a windowed relation that is hosted here", relation=name)
            self._check(relation)
            news += self._close(relation, _stored(until))
        return news

    def _is_here(self, relation: str) -> bool:
        return relation in self._store.engine.relations

    def _close(self, relation: Relation, until: int) -> bool:
        before = self._marker(relation)
        knowledge, name = self._knowledge, self._store.name
        knowledge.refresh(self._store.writer.connection)
        told = knowledge.membership.own(relation.name).vector
        if before is not None and before.until is not None and until <= before.until:
            lost = {inc: n for inc, n in before.vector.items() if inc != knowledge.incarnation}
            if covers(told, lost):
                return False
            until = before.until
        vector = {inc: n for inc, n in told.items() if knowledge.state.names.get(inc) == name}
        vector[knowledge.incarnation] = self._writing.commit.version
        moment = moment_of(until)
        self._write(CLOSED, (name, relation.name, moment, text_of(vector)))
        self._write(PROGRESS, (name, relation.name, moment))  # its own events are all here
        return True

    def _write(self, relation: str, row: Row) -> None:
        self._writing.insert(self._store.program.relations[relation], [row])

    # What there is to say.

    def status(self) -> dict[str, Any]:
        """How far each source has closed each relation, and is final here; what came too late here."""
        store, connection = self._store, self._store.writer.connection
        found: dict[str, Any] = {"in_charge": self.charge.reason() is None, "relations": {}}
        markers = {(m.relation, m.source): m.moment for m in read_markers(store.engine, connection)}
        table = store.engine.relations[PROGRESS]
        progress = {
            (relation, source): moment_of(until)
            for source, relation, until in connection.execute(
                f"SELECT c0, c1, c2 FROM {table.table.name} WHERE {table.partial}"
            )
        }
        for name, relation in windowed_relations(store.program.relations).items():
            if self._is_here(name):
                late = store.engine.rows_sql(late_name(name))
                owner = relation.columns.index(str(relation.owner))
                (count,) = connection.execute(
                    f"SELECT ifnull(sum(w), 0) FROM ({late}) WHERE c{owner} = ?", (store.name,)
                ).fetchone()
                found["relations"][name] = {
                    "late_rows": count,
                    "sources": {
                        source: {
                            "closed": _text(markers.get((name, source))),
                            "final": _text(progress.get((name, source))),
                        }
                        for source in relation.sources
                    },
                }
        return found


def _stored(moment: dt.datetime) -> int:
    return int(store_value(moment, TIMESTAMP))


def _text(moment: dt.datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def checked_moment(until: Any) -> dt.datetime:
    """A moment that somebody gave; a naive one means UTC."""
    if not isinstance(until, dt.datetime):
        raise DataError(f"windows close at a datetime, not at {until!r}", value=until, expected="TIMESTAMP")
    return until.replace(tzinfo=dt.UTC) if until.tzinfo is None else until.astimezone(dt.UTC)
