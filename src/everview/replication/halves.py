"""Halves: who passes on a part of what is held here, so that a transaction may arrive in two; for `status`.

A cut is a consistent state of its sender, so a transaction is whole wherever every hop passes on all that the
reader holds. One that passes on a part brings a half; the other half comes by another way, sooner or later.
What there is to go by is the list of members, and whom this site has read:

1. A member passes on what it is listed for, and what is made from relations that it is listed for.
2. That something is *not* in the list says nothing of a member that only sites without it have met: nobody
   has asked. It is settled that a member lacks something if this site has read from it, or if it joined by
   the snapshot of a member that has it, for it would have been listed there.
3. A transaction comes apart on the way only if there is one to write both halves: another member that holds
   both, or may, for it is not settled that it lacks the other. Where all the others hold parts, as around a
   hub that alone has everything, nobody else writes to both.
4. Who was read brings halves itself. Any other may feed those who were.
5. Where none is found so, but members are listed in part and nothing is settled of them, these are told: who
   holds more than it is listed for was met only by sites that lack it, and what it writes comes through one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from everview.planner.published import view_of
from everview.replication.knowledge import Knowledge

__all__ = ["halves_status"]


def halves_status(knowledge: Knowledge) -> list[dict[str, Any]]:
    """Return every member over which a transaction may arrive in halves, what it passes on and what not."""
    return _Halves.of(knowledge).found()


@dataclass(frozen=True, slots=True)
class _Halves:
    """What is held here, and what the others are known to hold."""

    knowledge: Knowledge
    streams: frozenset[str]
    """What comes from others and is shown here, but for what the library writes itself."""
    listed: dict[str, set[str]]
    """Other member that was not given up → the streams that it is listed for."""
    read: frozenset[str]
    """Those of them that this site has read."""
    written: dict[tuple[frozenset[str], frozenset[str]], bool] = field(default_factory=dict)
    """Two halves → whether somebody may write to both: of many devices many have the same part."""

    @classmethod
    def of(cls, knowledge: Knowledge) -> _Halves:
        """Look at the list and the cursors as they are now."""
        state, own = knowledge.state, knowledge.incarnation
        relations = knowledge.store.engine.program.relations
        streams = frozenset(
            stream
            for stream in knowledge.membership.wanted
            if stream not in relations or not relations[stream].system
        )
        listed = {
            incarnation: {s for s, groups in held.items() if any(h.length % 2 for h in groups.values())}
            for incarnation, held in state.members.items()
            if incarnation not in (own, *state.expired) and not incarnation.endswith("?")
        }
        listed = {incarnation: held for incarnation, held in listed.items() if held}
        read = frozenset(
            incarnation
            for incarnation in listed
            if not streams.isdisjoint(state.cursors.get(incarnation, ()))
        )
        return cls(knowledge, streams, listed, read)

    def found(self) -> list[dict[str, Any]]:
        """Return the members that pass on a part, where that brings a transaction here in halves."""
        surely = [self._told(incarnation, surely=True) for incarnation in sorted(self.listed)]
        told = surely if any(surely) else [self._told(i, surely=False) for i in sorted(self.listed)]
        return [one for one in told if one is not None]

    def _told(self, incarnation: str, *, surely: bool) -> dict[str, Any] | None:
        passes = frozenset(stream for stream in self.streams if self._passes(incarnation, stream))
        lacks = self.streams - passes
        if surely:
            lacks = frozenset(stream for stream in lacks if self._settled(incarnation, stream))
        if not (self.read and passes and lacks and self._is_written(passes, lacks)):
            return None
        return {
            "incarnation": incarnation,
            "name": self.knowledge.state.names.get(incarnation, ""),
            "passes": _names(passes),
            "lacks": _names(lacks),
            "read": incarnation in self.read,
        }

    def _passes(self, incarnation: str, stream: str) -> bool:
        """Whether a site has a stream for others, or all that it is made from (1)."""
        if incarnation == self.knowledge.incarnation:
            return stream in self.streams
        held, inputs = self.listed.get(incarnation, set()), self.knowledge.membership.inputs(stream)
        return stream in held or (bool(inputs) and held.issuperset(inputs))

    def _settled(self, incarnation: str, stream: str) -> bool:
        """Whether a member that is not listed for a stream is known not to have it (2)."""
        if incarnation in self.read:
            return True
        held = self.knowledge.state.members[incarnation].values()
        sponsors = {holding.sponsor for groups in held for holding in groups.values()} - {incarnation}
        return any(self._passes(sponsor, stream) for sponsor in sponsors)

    def _is_written(self, passes: frozenset[str], lacks: frozenset[str]) -> bool:
        """Whether another site may write to both halves (3)."""
        found = self.written.get((passes, lacks))
        if found is None:
            wanted = self.knowledge.membership.wanted
            ones, others = ({r for stream in half for r in wanted[stream]} for half in (passes, lacks))
            found = self.written[passes, lacks] = any(
                not held.isdisjoint(ones)
                and any(relation in held or not self._settled(writer, relation) for relation in others)
                for writer, held in self.listed.items()
            )
        return found


def _names(streams: Iterable[str]) -> list[str]:
    return sorted(set(map(view_of, streams)))
