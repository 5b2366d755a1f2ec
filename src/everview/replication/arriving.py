"""A cut that arrives: whether it may be applied, and what becomes of it.

The order of the checks is that of docs/REPLICATION.md; `tests/model/sync.py` is the specification.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from everview.engines.sqlite.engine import Engine, OnChange
from everview.engines.sqlite.names import TAGS
from everview.engines.sqlite.relations.commit import Commit
from everview.errors import WireError
from everview.replication.ended import Verdict, is_evident, weigh
from everview.replication.gossip import Tidings
from everview.replication.knowledge import Knowledge
from everview.replication.membership import join
from everview.replication.messages import START, Cursor, Gossip, Message, Page
from everview.replication.publishing import wanted
from everview.replication.renewal import knows_another_us
from everview.replication.rights import Rights
from everview.replication.state import Told
from everview.replication.strangers import comes_first
from everview.replication.versions import taken_groups

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
    OVER = "over"
    """This site has of a view what stores that are over have told nobody else: it joins anew."""
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
class Arriving:
    """A cut that has arrived, in the transaction of `commit`."""

    knowledge: Knowledge
    connection: sqlite3.Connection
    commit: Commit
    staged: Iterable[Message]
    """The messages before the last, read one by one: a cut may be larger than memory."""
    last: Message
    """The message that ends the cut, and tells all the rest."""
    tidings: Tidings
    """What it tells of members."""
    rights: Rights
    on_change: OnChange | None = None
    left: set[str] = field(init=False, default_factory=set)
    """The streams whose group was left, for the sender's or because nobody is left in it."""

    @property
    def sender(self) -> str:
        """Whose cut it is."""
        return self.last.sites[0]

    @property
    def told(self) -> Mapping[str, Mapping[str, Told]]:
        """What it tells of what each member has."""
        return self.tidings.known

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
        self.left = self.knowledge.groups.leave_the_lost()
        left, strange = self.knowledge.groups.settle(
            taken_groups(self.last), self.told, self.sender, self._listed()
        )
        self.left |= left
        if self.left and self.page.cut:  # what was asked for as a member is not the whole
            return Outcome.LEFT
        streams: dict[str, bool] = {}
        news = False
        for stream, start in self.page.froms.items():
            if stream not in self.engine.streams or not self.rights.may_write(stream):
                continue
            if stream in strange:
                self._warn_waiting(stream)
                return Outcome.REFUSED if self._stays(stream) else Outcome.UNLISTED
            if stream in self.left and start > 0:
                return Outcome.LEFT
            cursor = state.cursors.get(self.sender, {}).get(stream, START)
            whole = start == 0 and stream not in state.joined  # it does not matter what was read before
            known = whole or cursor.head == 0 or self.page.tags.get(cursor.head) == cursor.tag
            if start > cursor.head or not known:
                return Outcome.GAP
            if stream in self.gossip.provisional and not self._may_sponsor(stream):
                return Outcome.REFUSED
            if stream not in state.joined and self._comes_first(stream):
                self.knowledge.groups.found(self.page.froms)  # for the sender to come to, with all of it
                return Outcome.REFUSED
            if stream not in state.joined and not self._may_join(stream, start, cursor):
                return Outcome.UNLISTED if self._is_fed(stream) else Outcome.REFUSED
            news |= self.page.head >= cursor.head
            streams[stream] = self._lists_us(stream)
        weighed = {self._weigh(stream) for stream in streams if not self.engine.streams[stream].is_base}
        if Verdict.RENEW in weighed:
            return Outcome.OVER
        if Verdict.REFUSE in weighed:
            return Outcome.REFUSED
        if not streams and not self.engine.streams.keys().isdisjoint(self.gossip.groups):
            return Outcome.REFUSED
        if (
            self.published or self.partials
        ):  # they may be all that the two have in common, or all that is news
            return streams if news else {}
        if not streams:
            return Outcome.REFUSED
        return streams if news else Outcome.STALE

    def _weigh(self, view: str) -> Verdict:
        joins = self.page.froms[view] == 0 and view not in self.knowledge.state.joined
        evident = self._is_evident(view)
        return weigh(self.knowledge.membership, view, self._theirs, evident=evident, joins=joins)

    def _is_evident(self, view: str) -> bool:
        """Whether the sender has of a view, as to stores that are over, no more than there is."""
        membership = self.knowledge.membership
        return is_evident(membership, view, self._theirs, self.gossip, self.tidings, self.sender)

    @property
    def published(self) -> frozenset[str]:
        """The published views in it that are read here."""
        return frozenset(
            stream
            for stream in wanted(self.engine, self.connection)
            if stream in self.page.froms and self.rights.may_write(stream)
        )

    @property
    def partials(self) -> frozenset[str]:
        """The partial aggregates in it that are read here."""
        return frozenset(
            stream
            for stream in self.engine.partials
            if stream in self.page.froms and self.rights.may_write(stream)
        )

    def _warn_waiting(self, stream: str) -> None:
        """Say why nothing comes from a peer of another group, where that lasts."""
        waits = self.knowledge.state.provisional.get(stream)
        if waits is not None:
            names = self.knowledge.state.names
            _LOG.warning(
                "%s came from a file of %s that did not list this site, and %s belongs to another group; its "
                "file is not taken before %s, or whoever else answers, has listed this site",
                stream,
                names.get(waits.sponsor) or waits.sponsor,
                names.get(self.sender) or self.sender,
                names.get(waits.sponsor) or waits.sponsor,
            )

    def _comes_first(self, stream: str) -> bool:
        """Whether the sender has rows of a bag that we may have cancelled with others, unknown to it."""
        knowledge, groups = self.knowledge, self.gossip.groups.get(stream, ())
        bag = stream in knowledge.groups.bags
        return bag and comes_first(knowledge.membership, stream, self.told, self.sender, groups)

    def _may_join(self, stream: str, start: int, cursor: Cursor) -> bool:
        has = self._has(stream)
        listed = self._lists_us(stream)
        return self.knowledge.groups.may_join(
            stream, self.gossip, self.sender, start, cursor, has, listed=listed
        )

    def _is_fed(self, stream: str) -> bool:
        """Whether the sender is in a group in which somebody is left to feed a view; it may not know."""
        groups, theirs = self.knowledge.groups, self.gossip.groups.get(stream)
        return theirs is None or self.engine.streams[stream].is_base or groups.is_fed(stream, theirs[0])

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
        length, _ = self.tidings.members.get((own, stream, group), (0, ""))
        return length % 2 == 1

    def _listed(self) -> list[str] | None:
        """The streams that may be joined by a cut that nobody asked for; None if it was asked for."""
        if self.page.cut:
            return None
        return [name for name, start in self.page.froms.items() if start == 0 and self._lists_us(name)]

    def _stays(self, stream: str) -> bool:
        """Whether a stream in another group is not to come over, even if it is listed there."""
        groups, base = self.knowledge.groups, self.engine.streams[stream].is_base
        words = groups.words(taken_groups(self.last), self.told, self.sender)
        behind, ahead = words.get(stream, (False, False))
        if behind != ahead:  # whatever the names
            return ahead
        ours, theirs = groups.group(stream), self.gossip.groups[stream][0]
        waits = stream in self.knowledge.state.provisional or ours is None or ours < theirs
        return waits or not (base or groups.is_fed(stream, theirs))

    def _theirs(self, whole: str) -> Told:
        """What the sender has of a whole: it may hold the relation where we receive a view over it."""
        told = self.told.get(self.sender, {})
        return told.get(whole) or told.get(whole.rpartition(">")[2]) or Told({})
