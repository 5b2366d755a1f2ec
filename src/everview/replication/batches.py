"""Batches that nobody asked for: cuts left where whoever comes by finds them, in a folder say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from everview.errors import WireError
from everview.replication import partials, publishing
from everview.replication.arriving import Applied, Outcome
from everview.replication.conversation import Conversation
from everview.replication.ended import unsettled
from everview.replication.gossip import cursor_on, tidings_of
from everview.replication.messages import START, Cursor, Message, Request
from everview.replication.rights import ALL
from everview.replication.serving import Views
from everview.replication.wire import decode, encode


class Batches(Conversation):
    """A site that leaves cuts, and takes those that others have left."""

    def batch(self, since: int) -> Iterator[bytes]:
        """One cut (since, head] of everything that is hosted, for whoever finds it.

        Views that are made for others are in it only if somebody has asked for them.
        """
        after, done = b"", False
        while not done:
            with self._telling() as connection:
                self._knowledge.groups.found(self._store.engine.streams)
                wanted = {*self._store.engine.streams, *self._asked}
                offered = self._servable(provisional=True)
                streams = [(stream, since) for stream in offered if stream.name in wanted]
                published = publishing.asked_since(self._store.engine, connection, since)
                asked = sorted({*self._store.engine.partials, *self._asked})
                fed = [
                    (partials.asked_since(self._knowledge, connection, stored, since), since)
                    for stored in self._fed(asked)
                ]
                served = self._page(connection, streams, after, {}, None, 0, views=Views(published, fed))
                if served.page.done and published:
                    with self._store.writing() as writer:
                        publishing.note_told(self._store.engine, writer, served.page)
                data = encode(self._message(self._wants(), served))
            after, done = served.page.reached, served.page.done
            yield data

    def take(self, messages: Iterable[bytes]) -> Applied:
        """Apply a cut that was found. Its pages are decoded one by one, and again when they are applied.

        So they are held one by one, too, if they can be read twice.
        """
        coded = list(messages) if isinstance(messages, Iterator) else messages
        last = self.understood(_last_of(coded))
        with self._telling():
            publishing.defend(self._store, last, ALL)
        tidings = tidings_of(last)
        applied = self._apply(self._before(coded), last, tidings, ALL)
        if applied.outcome is Outcome.LEFT and self._knowledge.membership.is_expired():
            with self._telling():
                self._meet(last, tidings, overheard=True)  # which takes a new incarnation, to join anew
            applied = self._apply(self._before(coded), last, tidings, ALL)
        return applied

    def _before(self, coded: Iterable[bytes]) -> Iterator[Message]:
        """The messages of a batch before its last."""
        return (self.understood(decode(data)) for data, _ in pairwise(coded))

    def request(self) -> bytes:
        """Return a message with the cursors on everybody, to be left where others find it.

        Of a site of which some stream has not been read yet it shows none, to be given the whole.
        """
        with self._telling():
            message = self._message(self._wants(), None)
            gossip = message.gossip
            assert gossip is not None
            cursors = {
                place: self._least_cursor(message.sites[place])
                for place in gossip.cursors
                if self._least_cursor(message.sites[place]).head
            }
            return encode(
                msgspec.structs.replace(message, gossip=msgspec.structs.replace(gossip, cursors=cursors))
            )

    def _wants(self) -> Request:
        """What is hosted here, asked of nobody; it says what is still to be joined."""
        engine, state = self._store.engine, self._knowledge.state
        joined = [name for name in engine.streams if name in state.joined]
        published = publishing.wanted(engine, self._store.writer.connection)
        wanted = [*engine.streams, *published, *engine.partials]
        return Request("", dict.fromkeys(wanted, START), joined, 0, b"")

    def _least_cursor(self, incarnation: str) -> Cursor:
        """The cursor on a site in the stream read least of those that it is known to hold."""
        state, engine = self._knowledge.state, self._store.engine
        cursors, held = state.cursors.get(incarnation, {}), state.members.get(incarnation, {})
        found = [
            cursors[name] if name in cursors and self._is_in(name) else START
            for name in engine.streams.keys() - self._untaken.get(incarnation, frozenset())
            if name in cursors or name in held or any(n in held for n in engine.inputs_of(name))
        ]
        found += [cursors[name] for name in (*engine.published, *engine.partials) if name in cursors]
        return min(found, key=lambda cursor: cursor.head, default=START)

    def cursor_of(self, data: bytes) -> int | None:
        """Return how far the writer of a `request` has read this site; None if it must begin at 0."""
        message = self.understood(decode(data))
        with self._telling() as connection:
            self._meet(message, tidings_of(message), overheard=True)
            if message.request is not None:
                self._asked.update(message.request.streams)
            cursor = cursor_on(message, self._knowledge.incarnation)
            tags = self._knowledge.tags(connection, [cursor.head])
            known = cursor.head and tags.get(cursor.head) == cursor.tag
            has_all = known and publishing.has_all(self._store.engine, connection, message, cursor.head)
            return cursor.head if has_all else None

    def cursor_on(self, incarnation: str) -> int:
        """Return how far a site has been read, in the stream read least of those that it is known to hold."""
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            return self._least_cursor(incarnation).head

    def _is_in(self, stream: str) -> bool:
        return stream in self._knowledge.state.joined or stream in self._knowledge.state.provisional

    @staticmethod
    def extent(data: bytes) -> tuple[int, int]:
        """Return how many rows a message of a batch carries, and the head of the snapshot it was read in."""
        page = decode(data).page
        return (publishing.row_count(page), page.head) if page else (0, 0)

    def listing(self, incarnation: str) -> str:
        """A word for the streams in which a site is listed as a member of this site's groups."""
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            groups, held = self._knowledge.groups, self._knowledge.state.members.get(incarnation, {})
            listed = [
                (stream, group)
                for stream, holdings in sorted(held.items())
                for group, holding in holdings.items()
                if holding.length % 2 and group == groups.group(stream)
            ]
        return hashlib.blake2b(repr(listed).encode(), digest_size=8).hexdigest() if listed else ""

    @property
    def standing(self) -> str:
        """A word for what its batches tell: the groups that the site is in, or waits to be in, and views."""
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            state = self._knowledge.state
            published = self._store.engine.published.items()
            epochs = [(name, one.stands(self._store.writer.connection).epoch) for name, one in published]
            open_ = unsettled(self._knowledge.membership)
        program = (self._store.program.hash, self._versions_for(None) is not None)
        groups = (sorted(state.joined.items()), sorted(state.provisional), open_)
        told = repr((*groups, sorted(self._asked), epochs, program))
        return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def _last_of(coded: Iterable[bytes]) -> Message:
    """Return the last message of a batch; WireError if its pages do not make a cut."""
    before: Message | None = None
    for data in coded:
        message = decode(data)
        if message.page is None:
            raise WireError("a batch is one page or more", where="header")
        if before is None or before.page is None:
            if message.page.after:
                raise WireError("a page of the batch is missing", where="header", retry=True)
        elif before.page.done or (before.sites[0], before.page.reached) != (
            message.sites[0],
            message.page.after,
        ):
            raise WireError("the pages of a batch do not follow each other", where="header")
        before = message
    if before is None or before.page is None:
        raise WireError("a batch is one page or more", where="header")
    if not before.page.done:
        raise WireError("a page of the batch is missing", where="header", retry=True)
    return before
