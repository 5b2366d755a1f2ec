"""Charge: which store speaks for a source, and whom it asks before it does.

A store that was made here, and is still what it was, is in charge of its source. One that was put back or
copied has a new incarnation, and may have forgotten what it, or its original, has closed. So:

1. It *opens*: a row of `everview_closed` says that it wants to speak for the source. Of several the last
   counts.
2. Every store that has windowed relations, or only their markers, is a *participant*: it has a row of its own
   in `everview_participants`. Who hears of an opening notes that there, in the same commit, with its vectors:
   what it had of the source by then, and all that it had of markers and participants. From then on it counts
   no marker of anybody else, and who spoke for the source before steps down.
3. The store is in charge when all participants that it knows have heard, and its own vectors cover theirs. So
   it has all that anybody had of the source, knows whomever these knew, and makes the markers anew.

What nobody of these had of a source, nobody saw as final. The exception is a store that the source told
something *directly*, that told nobody who it is, and of which the source has forgotten: such a store is not
asked, and what is final there may differ. A participant that is gone for good is waited for until it is given
up; one that was given up and comes back writes its row again. A store that was put back takes its old row
away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.windows.markers import (
    CHARGED,
    FORMER,
    OPENED,
    OPENING,
    Marker,
    Vector,
    covers,
    openings,
    put,
    read_json,
    read_markers,
    read_vector,
    text_of,
    vector_of,
)
from everview.engines.sqlite.writing import Writing
from everview.errors import StoreError
from everview.language.windowed import CLOSED, PARTICIPANTS, windowed_relations

__all__ = ["Charge"]

_TAKE = "site.take_charge(), and sync until it returns True"


@dataclass(frozen=True, slots=True)
class Heard:
    """The opening of a source that a participant has heard of, and what it had by then."""

    opener: str
    seen: Mapping[str, Vector]
    """Relation → vector."""


class Charge:
    """What a store knows about who speaks for its source."""

    def __init__(self, store: Store, writing: Writing) -> None:
        self._store, self._writing = store, writing

    # Speaking.

    def require(self) -> None:
        """StoreError if this store is not in charge of its source."""
        reason = self.reason()
        if reason is not None:
            raise StoreError(f"{self._store.path}: {reason}", path=self._store.path)

    def reason(self) -> str | None:
        """Why this store is not in charge, and what to do; None if it is."""
        store, opening = self._store, self._opening()
        if opening is None:
            if store.ledger.site == 0:
                return None
            return (
                "it was restored or copied, and may have forgotten which windows it closed; "
                f"to write as {store.name!r} from here, call {_TAKE}"
            )
        if opening.opener != store.incarnation:
            return f"another store writes as {store.name!r} by now; to write from here again, call {_TAKE}"
        if opening.vector[store.incarnation] == CHARGED:
            return None
        waiting = self._waiting()
        if waiting:
            return (
                f"it waits for {', '.join(waiting)} to hear that it writes as {store.name!r}; "
                "sync, and try again"
            )
        return None

    @property
    def is_open(self) -> bool:
        """Whether this store wants to speak, and has not said that it does."""
        opening, own = self._opening(), self._store.incarnation
        return opening is not None and opening.vector.get(own) == OPENED

    def open(self) -> None:
        """Say that this store wants to speak for its source, unless it does."""
        opening, own = self._opening(), self._store.incarnation
        if (opening is None and self._store.ledger.site == 0) or (
            opening is not None and opening.opener == own
        ):
            return
        self._say(OPENED)

    def begin(self) -> None:
        """Say that it speaks."""
        self._say(CHARGED)

    def _say(self, state: int) -> None:
        store = self._store
        opening = self._opening()
        former = dict.fromkeys({} if opening is None else opening.vector, FORMER)
        vector = former | {store.incarnation: state}
        put(store, self._writing, CLOSED, [(store.name, OPENING, None, text_of(vector))])

    def _opening(self) -> Marker | None:
        return openings(read_markers(self._store, self._store.name)).get(self._store.name)

    def _waiting(self) -> list[str]:
        """The participants that have not heard, or had something that is not here, as far as is known."""
        store, own = self._store, self._store.incarnation
        participants = self._participants()
        found = set() if participants.keys() - {own} else {"the other sites"}
        names = dict(store.writer.connection.execute(f"SELECT incarnation, name FROM {SITES}"))
        here = {name: vector_of(store.writer.connection, name) for name in self._relations()}
        for incarnation, all_heard in participants.items():
            heard = all_heard.get(store.name)
            if incarnation == own:
                continue
            has_heard = heard is not None and heard.opener == own
            seen = {} if heard is None else heard.seen
            if not (has_heard and all(covers(here[name], had) for name, had in seen.items() if name in here)):
                found.add(names.get(incarnation) or incarnation)
        return sorted(found)

    # Taking part.

    def hear(self) -> None:
        """Take part, and note which openings are known here."""
        store = self._store
        known = self._participants().get(store.incarnation)
        heard: dict[str, Heard] = {}
        for source, opening in openings(read_markers(store)).items():
            before = None if known is None else known.get(source)
            if before is None or before.opener != opening.opener:
                before = Heard(opening.opener, self._seen(source))
            heard[source] = before
        if known is None or heard != known:
            text = text_of({source: [one.opener, one.seen] for source, one in heard.items()})
            put(store, self._writing, PARTICIPANTS, [(store.incarnation, text)])

    def leave(self, incarnation: str) -> bool:
        """Wait for a store no longer; whether it took part."""
        store = self._store
        key = [(incarnation, None)]
        return bool(
            store.engine.delete(
                store.writer.connection, PARTICIPANTS, key, self._writing.commit, self._writing.collect
            )
        )

    def participants(self) -> dict[str, str]:
        """Return what the stores that take part are called, by incarnation."""
        connection = self._store.writer.connection
        names = dict(connection.execute(f"SELECT incarnation, name FROM {SITES}"))
        return {incarnation: names.get(incarnation, "") for incarnation in self._participants()}

    def _relations(self) -> list[str]:
        wanted = (CLOSED, PARTICIPANTS, *windowed_relations(self._store.program.relations))
        return [name for name in wanted if name in self._store.engine.shares]

    def _seen(self, source: str) -> dict[str, Vector]:
        """What is here of a source's events, and of all markers and participants."""
        everyone = (CLOSED, PARTICIPANTS)
        return {
            name: vector_of(self._store.writer.connection, name, None if name in everyone else source)
            for name in self._relations()
        }

    def _participants(self) -> dict[str, dict[str, Heard]]:
        """Incarnation → what it has heard, by source; what is no such text says nothing."""
        stored = self._store.engine.shares[PARTICIPANTS]
        rows = self._store.writer.connection.execute(f"SELECT c0, c1 FROM {stored.table.name}")
        return {site: _heard(read_json(text)) for site, text in rows}


def _heard(told: object) -> dict[str, Heard]:
    found: dict[str, Heard] = {}
    for source, one in told.items() if isinstance(told, dict) else ():
        match one:
            case [str(opener), dict(seen)]:
                vectors = {name: read_vector(vector) for name, vector in seen.items()}
                if None not in vectors.values():
                    found[source] = Heard(opener, {n: v for n, v in vectors.items() if v is not None})
    return found
