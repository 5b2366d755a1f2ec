"""Applying a cut: one commit takes all of it, with cursors and vectors, or nothing of it.

The order of the checks is that of docs/REPLICATION.md; `tests/model/sync.py` is the specification.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

from everview.engines.sqlite.engine import Engine, OnChange
from everview.engines.sqlite.names import TAGS
from everview.engines.sqlite.parts import Arrival
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.streams import Stream
from everview.errors import WireError
from everview.language.relations import Semantics
from everview.replication.admitting import admitted, observe
from everview.replication.gossip import known_in, members_in
from everview.replication.knowledge import Knowledge
from everview.replication.membership import join
from everview.replication.messages import LONGEST, START, Cursor, Gossip, Message, Page, Section
from everview.replication.renewal import knows_another_us
from everview.replication.rights import Rights
from everview.replication.state import Told
from everview.replication.strangers import comes_first

_LOG = logging.getLogger("everview")


class Outcome(Enum):
    """What became of a cut."""

    APPLIED = "applied"
    STALE = "stale"
    """Nothing in it is new."""
    GAP = "gap"
    """It starts beyond what was read, or is not the sender's that was read."""
    UNLISTED = "unlisted"
    """The reader must be listed by the sender first."""
    REFUSED = "refused"
    """The sender is expired, or of another group, or may write nothing here."""
    LEFT = "left"
    """The sender is of a smaller group, or this site was given up: it joins anew, and asks again."""
    REWOUND = "rewound"
    """The sender knows more of this site than it does itself: its store went back in time."""


@dataclass(slots=True)
class Applied:
    """What became of a cut, how many rows grew, of which streams held before, and in which commit."""

    outcome: Outcome
    grown: int = 0
    streams: tuple[str, ...] = ()
    version: int = 0
    joined: bool = False
    """Whether the site became a member by it."""


@dataclass(slots=True)
class Cut:
    """A cut that is being applied, in the transaction of `commit`."""

    knowledge: Knowledge
    connection: sqlite3.Connection
    commit: Commit
    staged: Iterable[Message]
    """The messages before the last, read one by one: a cut may be larger than memory."""
    last: Message
    """The message that ends the cut, and tells all the rest."""
    rights: Rights
    on_change: OnChange | None = None
    told: Mapping[str, Mapping[str, Told]] = field(init=False)

    def __post_init__(self) -> None:
        self.told = known_in(self.last)

    @property
    def sender(self) -> str:
        """Whose cut it is."""
        return self.last.sites[0]

    @property
    def page(self) -> Page:
        """The last page."""
        assert self.last.page is not None
        return self.last.page

    @property
    def gossip(self) -> Gossip:
        """What the last page tells of members."""
        if self.last.gossip is None:
            raise WireError("the last page of a cut does not tell of members", where="header")
        return self.last.gossip

    @property
    def engine(self) -> Engine:
        """Where it goes."""
        return self.knowledge.store.engine

    # Whether it may be applied.

    def look(self) -> Outcome | dict[str, bool]:
        """Return the streams that are to be applied → whether the site is listed; or why none is."""
        state = self.knowledge.state
        if self.sender in state.expired or self.sender == self.knowledge.incarnation:
            return Outcome.REFUSED
        if self.knowledge.membership.is_expired():  # by this very message: it is not for a member
            return Outcome.LEFT
        if knows_another_us(self.knowledge, self.connection, self.last, self.commit.version - 1):
            return Outcome.REWOUND
        left, strange = self.knowledge.groups.settle(
            self.gossip.groups, self.told, self.sender, self._listed()
        )
        streams: dict[str, bool] = {}
        news = False
        for stream, start in self.page.froms.items():
            if stream not in self.engine.streams or not self.rights.may_write(stream):
                continue
            if stream in strange:
                self._warn_waiting(stream)
                return Outcome.REFUSED if self._stays(stream) else Outcome.UNLISTED
            if stream in left and start > 0:
                return Outcome.LEFT
            cursor = state.cursors.get(self.sender, {}).get(stream, START)
            whole = start == 0 and stream not in state.joined  # it does not matter what was read before
            known = whole or cursor.head == 0 or self.page.tags.get(cursor.head) == cursor.tag
            if start > cursor.head or not known:
                return Outcome.GAP
            if stream in self.gossip.provisional and not self._may_sponsor(stream):
                return Outcome.REFUSED
            if stream not in state.joined and self._comes_first(stream):
                self.knowledge.groups.found([stream])  # for the sender to come to
                return Outcome.REFUSED
            if stream not in state.joined and not self._may_join(stream, start, cursor):
                return Outcome.UNLISTED
            news |= self.page.head >= cursor.head
            streams[stream] = self._lists_us(stream)
        if not streams:
            return Outcome.REFUSED
        return streams if news else Outcome.STALE

    def _warn_waiting(self, stream: str) -> None:
        """Say why nothing comes from a peer of another group, where that lasts."""
        waits = self.knowledge.state.provisional.get(stream)
        if waits is not None:
            names = self.knowledge.state.names
            _LOG.warning(
                "%s came from a batch of %s that did not list this site, and %s belongs to another group; "
                "nothing is exchanged before %s has answered, or was away for too long",
                stream,
                names.get(waits.sponsor) or waits.sponsor,
                names.get(self.sender) or self.sender,
                names.get(waits.sponsor) or waits.sponsor,
            )

    def _comes_first(self, stream: str) -> bool:
        """Whether the sender has rows of a bag that we may have cancelled with others, unknown to it."""
        relation = self.engine.program.relations.get(stream)
        bag = relation is not None and relation.semantics is Semantics.BAG
        groups = self.gossip.groups.get(stream, ())
        return bag and comes_first(self.knowledge.membership, stream, self.told, self.sender, groups)

    def _may_join(self, stream: str, start: int, cursor: Cursor) -> bool:
        has = self._has(stream)
        listed = self._lists_us(stream)
        return self.knowledge.groups.may_join(
            stream, self.gossip, self.sender, start, cursor, has, listed=listed
        )

    def _has(self, stream: str) -> Told:
        """What the sender has of a stream; of a view, of its inputs joined."""
        found = Told({})
        for whole in self.engine.streams[stream].wholes:
            join(found.vector, self._theirs(whole).vector)
        return found

    def _may_sponsor(self, stream: str) -> bool:
        """A provisional site's batch is for its sponsor, if that has forgotten nothing since it was read."""
        cursor = self.gossip.provisional[stream]
        ours = self.connection.execute(
            f"SELECT 1 FROM {TAGS} WHERE version = ? AND tag = ?", (cursor.head, cursor.tag)
        ).fetchone()
        kept = self.knowledge.groups.forgotten_at(stream) <= cursor.head
        return ours is not None and stream in self.knowledge.state.joined and kept

    def _lists_us(self, stream: str) -> bool:
        group, own = self.gossip.groups.get(stream, [""])[0], self.knowledge.incarnation
        return any(
            inc == own and s == stream and g == group and length % 2
            for inc, s, g, length, _ in members_in(self.last)
        )

    def _listed(self) -> list[str] | None:
        """The streams that may be joined by a cut that nobody asked for; None if it was asked for."""
        if self.page.cut:
            return None
        return [name for name, start in self.page.froms.items() if start == 0 and self._lists_us(name)]

    def _stays(self, stream: str) -> bool:
        """Whether a stream in another group is not to come over, even if it is listed there."""
        groups = self.knowledge.groups
        ours, theirs = groups.group(stream), self.gossip.groups[stream][0]
        return stream in self.knowledge.state.provisional or ours is None or ours < theirs

    # Applying it.

    def apply(self, streams: Mapping[str, bool]) -> int:
        """Join all rows of these streams, then floors, vectors and cursors; return how many rows grew."""
        state = self.knowledge.state
        joining = {name for name in streams if name not in state.joined and self.page.froms[name] == 0}
        returning = {name for name in joining if self._holds_any(self.engine.streams[name])}
        for name in [name for name in returning if not self.engine.streams[name].is_base]:
            self._clear(name)
            returning.remove(name)
        self._raise_floors()
        grown = sum(self._lift(name) for name in sorted(returning))
        for message in chain(self.staged, (self.last,)):
            state.names.update(zip(message.sites, message.names, strict=True))
            self.knowledge.intern(self.connection, message.sites)
            sections = [] if message.page is None else message.page.sections
            for section in sections:
                if self._is_wanted(section, streams):
                    grown += self._merge(message, section, joining, returning)
        grown += sum(self._settle(name) for name in sorted(returning))
        self.commit.grown |= grown > 0
        self._note(streams)
        return grown

    def _is_wanted(self, section: Section, streams: Mapping[str, bool]) -> bool:
        if section.stream in streams:
            return True
        if section.stream in self.engine.streams and not self.rights.may_write(section.stream):
            self.knowledge.state.dropped += section.count
        return False

    def _holds_any(self, stream: Stream) -> bool:
        return any(part.read(self.connection, 0, None, 1).rows for part in stream.parts)

    def _merge(self, message: Message, section: Section, joining: set[str], returning: set[str]) -> int:
        stream = self.engine.streams[section.stream]
        if section.part >= len(stream.parts):
            raise WireError(f"{stream.name} has no part {section.part}", where="section")
        columns = admitted(self.knowledge, message, section, stream.parts[section.part])
        covered, joins = False, stream.name in joining
        if (stream.is_base or not joins) and section.part < len(stream.wholes):
            whole = stream.wholes[section.part]
            told = self.knowledge.membership.own(whole).vector
            vector = self.knowledge.vector(told)
            covered = any(seq <= vector.get(site, 0) for site, seq in set(zip(*columns[-2:], strict=True)))
            if covered:
                self.knowledge.lay_out(self.connection, told)
        arrival = Arrival(
            columns,
            self.commit.version,
            covered,
            joining=joins,
            returning=stream.name in returning,
            limit=observe(self.knowledge, columns, section.stream, self.sender),
        )
        return self.engine.merge(self.connection, stream.name, section.part, arrival, self.on_change)

    def _raise_floors(self) -> None:
        state, store = self.knowledge.state, self.knowledge.store
        for name, floor in self.gossip.floors.items():
            relation = self.engine.program.relations.get(name)
            if relation is None or floor <= state.floors.get(name, 0):
                continue
            if relation.semantics is Semantics.KEYED:
                if floor > store.clock.limit():
                    continue  # of a clock that runs ahead; it comes again, and counts when its time has come
                store.clock.observe(floor)
                self.commit.stamp = store.clock.stamp()
            elif floor > LONGEST:
                continue
            state.floors[name] = floor
        self.commit.floors, store.floors, store.apart = state.floors, state.floors, state.apart

    def _clear(self, name: str) -> None:
        """A view that is received writes nothing: on joining it starts empty, and nothing is lost."""
        self.engine.clear(self.connection, name, self.on_change)
        for whole in self.engine.streams[name].wholes:
            self.knowledge.membership.own(whole).vector.clear()

    def _lift(self, name: str) -> int:
        """What the snapshot by which the site joins does not cover is unseen, and goes above the floor."""
        self.knowledge.lay_out(self.connection, self._theirs(name).vector)
        state, floor = self.knowledge.state, self.commit.floors.get(name, 0)
        wanted = floor + floor % 2
        by = wanted - state.lifted.get(name, 0)  # a site that is not listed yet may take several wholes
        state.lifted[name] = wanted
        return self.engine.relations[name].lift(self.connection, self.commit, by) if by > 0 else 0

    def _settle(self, name: str) -> int:
        """The snapshot by which the site joins decides over what it held before."""
        self.knowledge.lay_out(self.connection, self._theirs(name).vector)
        group = self.gossip.groups.get(name, [""])[0]
        from_another = self.knowledge.state.former.get(name, group) != group
        return self.engine.settle(
            self.connection, name, self.commit, self.on_change, from_another=from_another
        )

    def _theirs(self, whole: str) -> Told:
        """What the sender has of a whole: it may hold the relation where we receive a view over it."""
        told = self.told.get(self.sender, {})
        return told.get(whole) or told.get(whole.rpartition(">")[2]) or Told({})

    def _note(self, streams: Mapping[str, bool]) -> None:
        """Vectors, membership and cursors: the last part of the commit."""
        state, membership = self.knowledge.state, self.knowledge.membership
        apart = self.knowledge.groups.strangers()
        end = Cursor(self.page.head, self.page.tags.get(self.page.head, 0))
        for name, listed in streams.items():
            for whole in self.engine.streams[name].wholes:
                join(membership.own(whole).vector, self._theirs(whole).vector)
            cursors = state.cursors.setdefault(self.sender, {})
            if end.head >= cursors.get(name, START).head:
                cursors[name] = end
            if name in state.joined:
                self.knowledge.groups.absorb(name, self.gossip)
            else:
                self.knowledge.groups.join(
                    name, self.gossip, self.sender, self.commit.version, self._has(name), listed=listed
                )
        membership.advance(
            self.commit.version if self.commit.grown else self.commit.version - 1,
            self.knowledge.store.clock.last,
        )
        membership.believe(self.told, apart)
