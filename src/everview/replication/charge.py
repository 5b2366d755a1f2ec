"""Charge: which store speaks for a source.

A store that was made here, and is still what it was, is in charge of its source. One that was restored or
copied has a new incarnation and may have forgotten what it, or its original, has closed. It *opens*: says by
a row of `everview_closed` that it is the source from now on; of several the last counts. It is in charge when
every member that holds the relations is known to have that commit. What such a member has is believed only
where one's own vector covers it, so nothing of the source is unknown any more; and who was in charge before
has heard of it, and has stepped down.
"""

from __future__ import annotations

from collections.abc import Mapping

from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.errors import StoreError
from everview.language.windowed import CLOSED, windowed_relations
from everview.replication.knowledge import Knowledge
from everview.replication.markers import OPENING, Marker, read_markers, text_of

_TAKE = "site.take_charge(), and sync until it returns True"


class Charge:
    """What a store knows about who speaks for its source."""

    def __init__(self, store: Store, writing: Writing, knowledge: Knowledge) -> None:
        self._store, self._writing, self._knowledge = store, writing, knowledge

    def require(self) -> None:
        """StoreError if this store is not in charge of its source."""
        reason = self.reason()
        if reason is not None:
            raise StoreError(f"{self._store.path}: {reason}", path=self._store.path)

    def reason(self) -> str | None:
        """Why this store is not in charge, and what to do; None if it is."""
        knowledge, name = self._knowledge, self._store.name
        knowledge.refresh(self._store.writer.connection)
        opening = self._opening()
        if opening is None:
            if self._store.number == 1:
                return None
            return (
                "it was restored or copied, and may have forgotten which windows it closed; "
                f"to write as {name!r} from here, call {_TAKE}"
            )
        if opening.opener != knowledge.incarnation:
            return f"another store writes as {name!r} by now; to write from here again, call {_TAKE}"
        if knowledge.state.charge == knowledge.incarnation:
            return None
        waiting = self._waiting(opening.vector[knowledge.incarnation])
        if waiting:
            return (
                f"it waits for {', '.join(waiting)} to hear that it writes as {name!r}; sync, and try again"
            )
        return None

    def take(self, *, alone: bool) -> bool:
        """Open, if that is not done; return whether this store is in charge."""
        knowledge = self._knowledge
        opening = self._opening()
        if opening is None and self._store.number == 1:
            return True
        if opening is None or opening.opener != knowledge.incarnation:
            knowledge.state.charge = ""
            self._open({} if opening is None else opening.vector)
        if alone:
            knowledge.state.charge = knowledge.incarnation
        return self.note()

    def _open(self, before: Mapping[str, int]) -> None:
        names, own = self._knowledge.state.names, self._knowledge.incarnation
        vector = dict.fromkeys([*before, *(inc for inc, name in names.items() if name == names[own])], 0)
        row = (self._store.name, OPENING, None, text_of(vector | {own: self._writing.commit.version}))
        self._writing.insert(self._store.program.relations[CLOSED], [row])

    def note(self) -> bool:
        """Remember that this store is in charge, once it is; return whether."""
        found = self.reason() is None
        if found and self._opening() is not None:
            self._knowledge.state.charge = self._knowledge.incarnation
        return found

    def _opening(self) -> Marker | None:
        found = read_markers(self._store.engine, self._store.writer.connection, self._store.name)
        return next((marker for marker in found if marker.relation == OPENING), None)

    def _waiting(self, commit: int) -> list[str]:
        """The members of whom it is not known that they have the opening, by name."""
        knowledge = self._knowledge
        state, own = knowledge.state, knowledge.incarnation
        relations = [CLOSED, *windowed_relations(self._store.program.relations)]
        here = [name for name in relations if name in self._store.engine.relations]
        found = set()
        for relation in here:
            if relation not in state.joined:
                found.add("the other sites")
            for incarnation, whole in knowledge.membership.holders(relation):
                told = state.known.get(incarnation, {}).get(whole)
                if incarnation != own and (told is None or told.vector.get(own, 0) < commit):
                    found.add(state.names.get(incarnation) or incarnation)
        return sorted(found)
