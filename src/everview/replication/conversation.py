"""The conversation of a site with others: messages in, messages out.

Nothing here does input or output but to the store; transports carry the bytes.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from everview.errors import EverviewError, SyncError, WireError
from everview.replication import publishing, renewal, setting_back
from everview.replication.applying import Cut
from everview.replication.arriving import Applied, Outcome
from everview.replication.certifying import certify
from everview.replication.gossip import Tidings, known_of_sender, tidings_of
from everview.replication.membership import covers
from everview.replication.messages import OTHER_PROGRAM, PROTOCOL, START, Message, Page, Refusal, Request
from everview.replication.readers import note_reader
from everview.replication.returning import set_aside_uncovered
from everview.replication.rights import ALL, Rights
from everview.replication.staging import Staging
from everview.replication.state import Peer
from everview.replication.telling import Served
from everview.replication.understanding import Understanding
from everview.replication.versions import taken_groups
from everview.replication.wire import decode, encode

_LOG = logging.getLogger("everview")
_AWAITED = 1024
"""How many requests are remembered; an answer to an older one is not taken, and asked for again."""


class Conversation(Understanding):
    """Messages in, messages out. All methods may be called from any thread."""

    # The dialling side.

    def ask(self, address: str, *, give: Served | None = None, incarnation: str | None = None) -> Message:
        """Return a message that asks the peer at an address for what is new, and may answer it, too."""
        with self._telling() as connection:
            if incarnation is None:
                peer = self._knowledge.state.peers.get(address)
                incarnation = "" if peer is None else peer.incarnation
            request = self._request(connection, incarnation, ALL)
            if incarnation:
                self._named.add(incarnation)
            return self._message(request, give, incarnation)

    def tell(self, give: Served | None, incarnation: str = "") -> Message:
        """Return a message to a peer that asks for nothing."""
        with self._telling():
            return self._message(None, give, incarnation)

    def hear(self, message: Message, data: bytes, address: str, rights: Rights = ALL) -> Applied | None:
        """Take what a message brings; None when its page is one of several, or it has none."""
        message = self.understood(message, rights)
        tidings = self._tidings(message)
        anew = self._mind_clock(message, tidings)
        applied = self._take_page(message, data, tidings, rights)
        if tidings is None:
            return applied
        with self._telling():
            anew |= self._meet(message, tidings, rights, dialling=bool(address))
            if address:
                now = self._store.environment.now_us()
                self._knowledge.state.peers[address] = Peer(message.sites[0], now)
        return Applied(Outcome.LEFT) if anew else applied

    # The listening side.

    def answer(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Take any message, and return the answer: never an exception for what a peer may send."""
        try:
            return self.respond(data, rights)
        except WireError as error:
            return self._refuse("malformed", str(error), retry=error.retry)
        except EverviewError as error:
            return self._refuse("store", str(error), retry=True)

    def respond(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer a message; WireError if it is none, and the store's own errors as they are."""
        try:
            message = decode(data)
            if self._is_unknown(message):
                return self._refuse(OTHER_PROGRAM, self._other_program(message), retry=False)
            message = self.understood(message, rights)
            tidings = self._tidings(message)
            anew = self._mind_clock(message, tidings)
            applied = self._take_page(message, data, tidings, rights)
            with self._telling() as connection:  # what was heard is saved with what is told
                if tidings is not None and self._meet(message, tidings, rights):
                    anew = True
                if anew:
                    applied = Applied(Outcome.LEFT)
                self._advance(connection)  # it may be another incarnation now
                more = message.page is None or (applied is None and not message.page.done)
                again = applied is not None and applied.outcome in (Outcome.GAP, Outcome.LEFT)
                page = None
                if message.request is not None and tidings is not None:
                    page = self._serve(connection, message, rights)
                wanted = None
                if more or again:
                    wanted = self._request(connection, message.sites[0], rights)
                answer = self._message(wanted, page, message.sites[0])
            return encode(answer)  # others need not wait for that
        except WireError:
            raise
        except SyncError as error:
            _LOG.info("refused a message: %s", error)
            with self._counting:
                self.refused += 1
            return self._refuse("refused", str(error), retry=error.retry)

    def _refuse(self, code: str, text: str, *, retry: bool) -> bytes:
        sites, names = [self._knowledge.incarnation], [self._store.name]
        refusal, versions = Refusal(code, text, retry), None
        if code == OTHER_PROGRAM:
            versions = self._declared
        message = Message(
            PROTOCOL, self._store.program.hash, sites, names, refusal=refusal, versions=versions
        )
        return encode(message)

    def serve(self, message: Message, rights: Rights = ALL) -> Served | None:
        """Return a page of what a message asks for."""
        with self._telling() as connection:
            served = self._serve(connection, message, rights)
            if served is None:
                return None
            return replace(served, gossip=self._gossip(served.register, message.sites[0]))

    def unfounded(self, message: Message) -> set[str]:
        """What the sender of a message wants, both hold, and neither is in a group of."""
        return (_unfounded(message) & self._store.engine.streams.keys()) - self.joined

    @property
    def joined(self) -> AbstractSet[str]:
        """The streams in which this site is a member."""
        return self._knowledge.state.joined.keys()

    def has_it_all(self, message: Message, give: Served) -> bool:
        """Whether the sender of a message has all that a page for it, and what goes with it, would tell."""
        page, told, mine = give.page, message.gossip, give.gossip
        if page.sections or not page.done or not page.froms or told is None or mine is None:
            return False
        if any(start != page.head for start in page.froms.values()):
            return False
        if len(mine.omitted) < len(mine.rolls):  # it would hear of someone
            return False
        if mine.provisional or any(floor > told.floors.get(name, 0) for name, floor in mine.floors.items()):
            return False
        theirs = known_of_sender(message)
        with self._store.exclusive():
            own = self._knowledge.state.known.get(self._knowledge.incarnation, {})
            return all(
                (held := theirs.get(whole) or theirs.get(whole.rpartition(">")[2])) is not None
                and covers(held.vector, has.vector)
                for whole, has in own.items()
            )

    # Inside.

    def _tidings(self, message: Message) -> Tidings | None:
        """What a message tells of members; None if it leaves out what is not known here."""
        gossip = message.gossip
        with self._store.exclusive():
            if gossip is None or not gossip.rolls:
                return tidings_of(message)
            self._rolls.name(message.sites[0], gossip.rolls)
            self._knowledge.refresh(self._store.writer.connection)
            own = self._rolls.own(self._knowledge.state)
            left_out = self._rolls.understand(gossip, own)
            return None if left_out is None else tidings_of(message, left_out, own)

    def _mind_clock(self, message: Message, tidings: Tidings | None) -> bool:
        """Go by this clock again, if it was ahead and is right by the sender's; return whether that was so.

        Before anything is taken: what was asked for was for another incarnation. But not before a store that
        went back in time is found out: what it has written since has to be told again, too, and under a new
        incarnation nobody would know.
        """
        sender, connection = message.sites[0], self._store.writer.connection
        with self._store.exclusive():
            self._knowledge.refresh(connection)
            if tidings is None or not setting_back.is_due(self._knowledge, tidings, sender):
                return False
            head = self._knowledge.head(connection)
            if renewal.knows_another_us(self._knowledge, connection, message, head):
                return False
            self._set_back(tidings, sender)
            return True

    def _meet(
        self,
        message: Message,
        tidings: Tidings,
        rights: Rights = ALL,
        *,
        dialling: bool = False,
        overheard: bool = False,
    ) -> bool:
        """Hear of members and groups; return whether the site is to join anew, and must ask again.

        So does a site that was given up, and one that meets a smaller group than its own. Of two strangers
        the one that was dialled founds what both hold; what it may not give to the other, or was asked for
        and did not found, the other founds.
        """
        knowledge, connection = self._knowledge, self._store.writer.connection
        head = knowledge.head(connection)
        if renewal.knows_another_us(knowledge, connection, message, head):
            self._rewound()
            return True
        publishing.defend(self._store, message, rights)
        knowledge.learn_inputs(message.versions)
        knowledge.membership.meet(tidings.new_members)
        heard = len(message.sites) if rights.writes != frozenset() else 1  # of others no rows are taken
        knowledge.learn_names(message.sites[:heard], message.names[:heard])
        now_us = self._store.environment.now_us()
        note_reader(knowledge.state, self._store.engine, message, rights, now_us)
        if knowledge.membership.is_expired():
            with self._store.writing() as writer:
                renewal.renew(knowledge, writer, head, retire=True)
            return True
        if message.sites[0] in knowledge.state.expired:
            knowledge.membership.tell_expired(message.sites[0])
        knowledge.groups.lose_expired_sponsors()
        left = knowledge.groups.leave_the_lost()
        if message.gossip is not None and message.sites[0] not in knowledge.state.expired:
            told, listed = tidings.known, () if overheard else None
            left |= knowledge.groups.settle(taken_groups(message), told, message.sites[0], listed)[0]
            knowledge.groups.absorb_all(message.gossip)  # before what their members have is believed
            # A site that is only fed tells it no other way.
            news = tidings.new_known
            knowledge.membership.believe(news, message.sites[0], knowledge.groups.strangers())
            knowledge.membership.release(told.get(message.sites[0], {}))
            if not overheard:
                knowledge.membership.note_met(message.sites[0])
        if left:
            with self._store.writing() as writer:
                Staging.clear_all(writer)  # they were asked for by a member, and left out what it has
        request = message.request
        knowledge.groups.decline()
        if message.gossip is not None and request is not None:
            has = {*request.joined, *message.gossip.groups, *message.gossip.provisional}
            knowledge.groups.strike(message.sites[0], request.streams.keys() - has)
        if request is not None:
            wants = [s for s in request.streams if s not in request.joined and rights.may_read(s)]
            if request.sender:  # asked, and not merely overheard
                read = knowledge.state.cursors.get(message.sites[0])
                held = set(request.streams) if dialling and not read else set()
                if message.sites[0] in self._named:
                    held -= _unfounded(message)
                inputs = self._store.engine.inputs_of
                knowledge.groups.found(stream for stream in wants if not held.issuperset(inputs(stream)))
            sender, told = message.sites[0], tidings.known
            coming = knowledge.groups.coming(request, message.gossip, told, sender)
            knowledge.groups.enlist(sender, filter(rights.may_read, coming))
        return bool(left)

    def _request(self, connection: sqlite3.Connection, sender: str, rights: Rights) -> Request:
        """Ask a sender for all that is hosted here, or for the next page of a cut that has begun.

        A stream that the sender may not write here is not asked for: its cursor and vector stay, and it
        starts where they are when the right is given.
        """
        state = self._knowledge.state
        streams = [name for name in self._store.engine.streams if rights.may_write(name)]
        cursors = state.cursors.get(sender, {})
        joined = [name for name in streams if name in state.joined]
        asked = {name: cursors.get(name, START) if name in state.joined else START for name in streams}
        asked |= {
            name: START
            for name in publishing.wanted(self._store.engine, connection)
            if rights.may_write(name)
        }
        asked |= {
            name: cursors.get(name, START) for name in self._store.engine.partials if rights.may_write(name)
        }
        begun = Staging(connection, sender).last()
        if begun is not None and begun.froms == {name: asked.get(name, START).head for name in begun.froms}:
            return self._await(Request(sender, asked, joined, begun.cut, begun.reached))
        return self._await(Request(sender, asked, joined, self._store.environment.tag(), b""))

    # Taking.

    def _awaits(self, page: Page) -> bool:
        """Whether a page answers what this site has asked, being what it still is.

        A page leaves out what the reader had when it asked. To a site that has taken a new incarnation since,
        or has left its group, and joins by a snapshot, it would look as if that had been collected.
        """
        asked = self._awaited.get(page.cut)
        if asked is None:
            return False
        incarnation, joined = asked
        now = self._knowledge.state.joined
        return incarnation == self._knowledge.incarnation and all(
            now.get(name) == group for name, group in joined.items() if name in page.froms
        )

    def _await(self, request: Request) -> Request:
        knowledge = self._knowledge
        joined = {name: knowledge.state.joined[name] for name in request.joined}
        self._awaited[request.cut] = (knowledge.incarnation, joined)
        while len(self._awaited) > _AWAITED:
            del self._awaited[next(iter(self._awaited))]
        return request

    def _take_page(
        self, message: Message, data: bytes, tidings: Tidings | None, rights: Rights
    ) -> Applied | None:
        """Stage a page of a cut, if there is one; at the last one apply it all."""
        page = message.page
        if page is None:
            return None
        if tidings is None or not self._awaits(page):  # it comes again, in full
            return Applied(Outcome.GAP)
        if page.done and not page.after:
            return self._apply(None, message, tidings, rights)
        if not any(map(rights.may_write, page.froms)):  # nothing was asked for, so there are no pages of it
            return Applied(Outcome.REFUSED)
        with self._store.writing() as connection:
            staging = Staging(connection, message.sites[0])
            if not staging.follows(page):
                return Applied(Outcome.GAP)
            if not page.done:
                staging.add(page, data)
                return None
        return self._apply(None, message, tidings, rights)

    def _apply(
        self, staged: Iterable[Message] | None, last: Message, tidings: Tidings, rights: Rights
    ) -> Applied:
        """Apply a cut in one commit, and forget its pages, whatever became of it."""
        with self._committing() as connection:
            knowledge, commit = self._knowledge, self._writing.commit
            staging = Staging(connection, last.sites[0])
            if staged is None:
                staged = staging.messages() if last.page is not None and last.page.after else ()
            knowledge.learn_inputs(last.versions)
            knowledge.membership.meet(tidings.new_members)
            knowledge.membership.advance(commit.version - 1, self._store.clock.last)
            cut = Cut(knowledge, connection, commit, staged, last, tidings, rights, self._writing.collect)
            if last.request is not None:
                coming = knowledge.groups.coming(last.request, last.gossip, tidings.known, cut.sender)
                knowledge.groups.enlist(cut.sender, filter(rights.may_read, coming))
            knowledge.membership.release(tidings.known.get(cut.sender, {}))
            found = cut.look()
            if isinstance(found, dict):
                # A stream that is joined by this cut may also grow by what the site held before.
                plain = tuple(name for name in found if name in knowledge.state.joined)
                applied = Applied(
                    Outcome.APPLIED, cut.apply(found), plain, commit.version, len(plain) < len(found)
                )
                certify(knowledge, connection, commit, self._writing.collect)
                if self.closing is not None and not self.closing.charge.note():
                    set_aside_uncovered(knowledge, connection, self._writing)
            else:
                applied = Applied(found)
                if found is Outcome.OVER:
                    _LOG.info(
                        "views here may show what stores that are gone have told nobody else; they are read "
                        "anew from %s, and from whoever is met next",
                        knowledge.state.names.get(cut.sender) or cut.sender,
                    )
                    renewal.renew(knowledge, connection, commit.version - 1, retire=True)
                    applied = Applied(Outcome.LEFT)
                if found is Outcome.REWOUND:
                    renewal.rewound(knowledge, connection, self._writing, self.opened_at)
                    self.opened_at = commit.version
            if cut.left:
                Staging.clear_all(connection)
            staging.clear()
            self._look_ahead(connection)
            self._note_source(cut.sender, applied)
            return applied

    def _note_source(self, sender: str, applied: Applied) -> None:
        """Remember which of the last commits brought nothing but what one sender gave."""
        if applied.grown:
            before, known = applied.version - 1, self._from.setdefault(sender, {})
            for name in applied.streams:
                first, latest = known.get(name, (before, before))
                known[name] = (first if latest == before else before, applied.version)


def _unfounded(message: Message) -> set[str]:
    """What a sender wants, is in no group of, and has nothing of but what it wrote: it founds none.

    So it is with a relation that is received and not shown, and has not come yet.
    """
    told = known_of_sender(message)
    request, gossip = message.request, message.gossip
    if request is None or gossip is None:
        return set()
    return {
        stream
        for stream in request.streams.keys() - {*request.joined, *gossip.groups, *gossip.provisional}
        if stream in told
        and not any(commit and site != message.sites[0] for site, commit in told[stream].vector.items())
    }
