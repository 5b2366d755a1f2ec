"""What a site is to others, and what it tells them.

Whatever is told to another site is in the store first, so that a site that dies and comes back stands by what
it said. Pages are read for others in snapshots of their own.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat

import msgspec

from everview.engines.sqlite.lineage import Lineage
from everview.engines.sqlite.names import STORE, TAGS
from everview.engines.sqlite.partials import StoredPartials
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.streams import Stream
from everview.engines.sqlite.writing import Writing
from everview.language.windowed import CLOSED
from everview.replication import partials, publishing, renewal, serving, setting_back
from everview.replication.budget import PAGE_ROWS, Budget
from everview.replication.closing import Closing
from everview.replication.ended import with_unsettled
from everview.replication.filling import fill, is_due
from everview.replication.gossip import (
    Register,
    Tidings,
    gossip_of,
    known_of_sender,
    told_in_full,
    with_cancelled,
)
from everview.replication.knowledge import Knowledge
from everview.replication.messages import PROTOCOL, Gossip, Message, Page, Request, Versions
from everview.replication.readers import note_given
from everview.replication.rights import Rights
from everview.replication.rolls import Rolls
from everview.replication.state import is_crowded
from everview.replication.versions import versions_of

_POLL_SECONDS = 0.25
"""How often a commit of another process is looked for."""


@dataclass(frozen=True, slots=True)
class Served:
    """A page that is to be sent, and the sites that it names.

    `gossip` is what the site knew when the page was read. What it has learnt since may cover rows that are
    not in the page, and whoever reads them together would take those rows for forgotten.
    """

    page: Page
    register: Register
    gossip: Gossip | None = None


class Teller:
    """A site that speaks. All methods may be called from any thread."""

    def __init__(
        self,
        store: Store,
        writing: Writing,
        *,
        page_rows: int = PAGE_ROWS,
    ) -> None:
        self._store, self._writing = store, writing
        self._page_rows = page_rows
        self._knowledge = Knowledge(store)
        self._rolls = Rolls()
        # Reader → of whom it was last told in full, where not all fits.
        self._turns: dict[str, str] = {}
        self.closing: Closing | None = None
        """How windows are closed here, if the program has any."""
        if CLOSED in store.engine.relations:
            self.closing = writing.door = Closing(store, writing, self._knowledge)
        self._lineage = Lineage(store.file, in_memory=store.in_memory)
        self._indexed = False
        self._asked: set[str] = set()
        self._derived: set[str] = set()
        self._next: int | None = None
        # Cut → the incarnation that asked for it, and the groups it was in.
        self._awaited: dict[int, tuple[str, dict[str, str]]] = {}
        # Who was dialled and asked by its incarnation: it has founded what it can.
        self._named: set[str] = set()
        self._declared = versions_of(store.program)
        # Sender → the hash of the program that it said it runs; hash → what that declares.
        self._programs: dict[str, str] = {}
        self._versions: dict[str, Versions] = {}
        # Sender → relations whose rows are not taken from it.
        self._untaken: dict[str, frozenset[str]] = {}
        # Sender → stream → commits (first, latest] that brought only what it gave, and need not go back.
        self._from: dict[str, dict[str, tuple[int, int]]] = {}
        self.refused = 0
        """How many messages were answered by a refusal for what they say, since the store was opened."""
        self._counting = threading.Lock()
        with store.exclusive(), store.explained("opened"):
            connection = store.writer.connection
            self._knowledge.refresh(connection)
            self._look_ahead(connection)
            (last,) = connection.execute(f"SELECT clock FROM {STORE}").fetchone()
            store.clock.observe(last)
            self.opened_at = self._knowledge.head(connection)
            strange = self._lineage.look(connection)
        if strange is not None:
            with self._committing() as connection, store.explained("opened"):
                renewal.renew(self._knowledge, connection, self.opened_at, retire=strange == "rewound")
        if is_new := is_due(self._knowledge):
            with self._committing() as connection, store.explained("opened"):
                fill(self._knowledge, connection, writing)
        if strange is not None or is_new:
            # So that it is not taken for strange again before it has spoken.
            self._lineage.show(store, self._knowledge.incarnation, self._knowledge.former)

    # Who and where.

    @property
    def incarnation(self) -> str:
        """What the site is known by to others."""
        with self._store.exclusive():
            self._knowledge.refresh(self._store.writer.connection)
            return self._knowledge.incarnation

    @property
    def head(self) -> int:
        """The number of the last commit."""
        with self._store.reading(inside=False) as handle:
            return self._knowledge.head(handle.connection)

    def wait(self, head: int, timeout: float) -> bool:
        """Wait for a commit after `head`; return whether there is one."""
        end = time.monotonic() + timeout
        while self.head <= head:
            left = end - time.monotonic()
            if left <= 0 or self._store.closed:
                return False
            self._writing.wait(min(left, _POLL_SECONDS))
        return True

    def close(self) -> None:
        """Close the store, and note beside its file how far it has come."""
        if not self._store.closed:
            # The note helps a store that is put back; that it cannot be written is no reason to stay open.
            with self._store.exclusive(), suppress(OSError, sqlite3.Error):
                self._lineage.note(self._store.writer.connection, self._knowledge.former)
        self._store.close()

    # What precedes and follows a message.

    @contextmanager
    def _committing(self) -> Iterator[sqlite3.Connection]:
        """A transaction; whatever changed of the state is saved in it."""
        try:
            with self._writing.transaction():
                connection = self._store.writer.connection
                self._knowledge.refresh(connection)
                yield connection
                self._knowledge.save(connection)
                # Whoever hears of this commit will show its tag: now is the cheapest time to remember it. A
                # site that has told nobody anything yet has not by this either.
                grown = self._writing.commit.grown  # else its number is taken back
                connection.execute(
                    f"UPDATE {STORE} SET clock = ?, shown = iif(shown, version + ?, 0)",
                    (self._store.clock.last, grown),
                )
                if grown:
                    connection.execute(f"INSERT OR IGNORE INTO {TAGS} SELECT version, tag FROM {STORE}")
        except BaseException:
            self._knowledge.forget()
            raise

    @contextmanager
    def _telling(self) -> Iterator[sqlite3.Connection]:
        """What precedes a message: the state that it tells is saved, and that it was told is remembered.

        Mostly nothing changes, and then nothing is written.
        """
        if not self._indexed:
            with self._store.writing() as connection:
                self._store.engine.index_versions(connection)
                if self._store.engine.own():
                    head, epoch = self._knowledge.head(connection), publishing.new_epoch(self._store)
                    self._store.engine.publish(connection, head, epoch)
            self._indexed = True
        with self._store.exclusive():
            connection = self._store.writer.connection
            self._knowledge.refresh(connection)
            self._advance(connection)
            try:
                yield connection
                if self._knowledge.changed:
                    with self._store.writing() as writer:
                        self._knowledge.save(writer)
                self._lineage.show(self._store, self._knowledge.incarnation, self._knowledge.former)
            except BaseException:
                self._knowledge.forget()
                raise

    def _advance(self, connection: sqlite3.Connection) -> None:
        """Have what is told of this site be as it is now."""
        head = self._knowledge.head(connection)
        self._knowledge.membership.advance(head, self._store.clock.stamp())

    # What is told.

    def _message(self, request: Request | None, served: Served | None, reader: str | None = None) -> Message:
        """A message to a reader, or for whoever finds it."""
        knowledge = self._knowledge
        register = Register(knowledge.incarnation) if served is None else served.register
        gossip = (served and served.gossip) or self._gossip(register, reader)
        if request is not None:
            connection = self._store.writer.connection
            gossip = partials.with_standings(gossip, knowledge, connection, register, request.sender)
        labels = list(map(knowledge.state.names.get, register.sites, repeat("")))
        page = None if served is None else served.page
        program, versions = self._store.program.hash, self._versions_for(reader)
        return Message(PROTOCOL, program, register.sites, labels, request, page, gossip, versions=versions)

    def _versions_for(self, reader: str | None) -> Versions | None:
        """What this program declares, for a reader that may run another, or may not know of one that does.

        Among sites that all run one program, and have heard of no other, nothing is said of it.
        """
        state, own = self._knowledge.state, self._store.program.hash
        others = self._programs.values() if reader is None else (self._programs.get(reader, own),)
        if not state.inputs and all(program == own for program in others):
            return None
        listed = {stream for streams in state.members.values() for stream in streams}
        inputs = {s: list(self._knowledge.groups.inputs(s)) for s in sorted(listed) if "#" in s}
        return msgspec.structs.replace(self._declared, inputs=inputs)

    def _gossip(self, register: Register, reader: str | None = None) -> Gossip:
        """What a reader is told of members; whoever finds a file is told everything: it cannot ask again."""
        knowledge, state = self._knowledge, self._knowledge.state
        roll, full = self._rolls.own(state), None
        if reader is not None and is_crowded(state, knowledge.incarnation):
            others = told_in_full(state, roll, knowledge.incarnation, self._turns.get(reader, ""))
            self._turns[reader] = others[-1] if others else ""
            full = {knowledge.incarnation, *others}
        served_now = [stream.name for stream in self._servable()]
        collected = {name: knowledge.groups.forgotten_at(name) for name in served_now}
        served = knowledge.groups.served(served_now)
        omitted = self._rolls.shared(roll, reader)
        gossip = gossip_of(state, register, served, collected, roll, full, reader, omitted)
        gossip = with_cancelled(gossip, knowledge.groups, register, reader)
        gossip = with_unsettled(gossip, knowledge.membership)
        return publishing.with_standings(gossip, self._store.engine, self._store.writer.connection)

    # Serving.

    def _servable(self, *, provisional: bool = False) -> list[Stream]:
        """What may be served: streams in which the site is a member."""
        state, engine = self._knowledge.state, self._store.engine
        found = []
        for name in engine.offers:
            stream = engine.offered(name)
            if stream is None:
                continue
            needed = [name] if name in engine.streams else list(stream.inputs)
            waits = provisional and all(n in state.provisional or n in state.joined for n in needed)
            if waits or all(n in state.joined for n in needed):
                found.append(stream)
        return found

    def _serve(self, connection: sqlite3.Connection, message: Message, rights: Rights) -> Served | None:
        request, reader, knowledge = message.request, message.sites[0], self._knowledge
        if request is None or request.sender != knowledge.incarnation:
            return None
        heads = [cursor.head for cursor in request.streams.values() if cursor.head]
        tags = knowledge.tags(connection, heads)
        if any(tags.get(c.head) != c.tag for c in request.streams.values() if c.head):
            self._rewound()
            return None
        if reader in knowledge.state.expired:
            page = Page(request.cut, b"", b"", True, knowledge.head(connection), {}, {}, [])
            return Served(page, Register(knowledge.incarnation))
        strangers = set(request.streams) - set(request.joined)
        told = {} if message.gossip is None else message.gossip.groups
        streams = []
        for stream in self._servable():
            cursor = request.streams.get(stream.name)
            if cursor is None or not rights.may_read(stream.name):
                continue
            theirs = None if stream.name in strangers else told.get(stream.name, [""])[0]
            if theirs is not None and theirs != knowledge.groups.group(stream.name):
                continue
            streams.append((stream, cursor.head))
        self._index_derived([stream.name for stream, _ in streams])
        vectors = known_of_sender(message)
        skipped = {
            stream.name: knowledge.vector(vectors[stream.name].vector)
            for stream, _ in streams
            if stream.is_base and stream.name in vectors and stream.name not in strangers
        }
        passed = {
            name: latest
            for name, (first, latest) in self._from.get(reader, {}).items()
            if name in request.joined and name in request.streams
            if first <= request.streams[name].head <= latest
        }
        published = [
            publishing.Asked(found, publishing.at_of(message.gossip, name))
            for name, found in self._store.engine.published.items()
            if name in request.streams and rights.may_read(name)
        ]
        heads_of = {name: cursor.head for name, cursor in request.streams.items() if rights.may_read(name)}
        fed = [
            (
                partials.asked(knowledge, connection, stored, message, heads_of[stored.stream]),
                heads_of[stored.stream],
            )
            for stored in self._fed(heads_of)
        ]
        views = serving.Views(published, fed)
        served = self._page(connection, streams, request.after, skipped, heads, request.cut, passed, views)
        note_given(knowledge.state, reader, served.page)
        return served

    def _fed(self, streams: Collection[str]) -> list[StoredPartials]:
        """Those of the streams that are partial aggregates.

        Where they are computed for others that begins, or is caught up, with a commit, so that other
        processes look.
        """
        engine = self._store.engine
        feeds = [engine.feeds[name] for name in streams if name in engine.feeds]
        new = [f for f in feeds if not f.is_live or f.is_behind(self._store.writer.connection)]
        if new:
            with self._committing() as connection:
                for feed in new:
                    feed.begin(connection)
                self._writing.commit.grown = True
            for feed in new:
                engine.feed(feed.stream)
            self._advance(self._store.writer.connection)
        return [stored for name in streams if (stored := engine.telling(name)) is not None]

    def _index_derived(self, streams: list[str]) -> None:
        """A view's stream needs its indexes from when it is first read here."""
        relations = self._store.program.relations
        new = [name for name in streams if name not in relations and name not in self._derived]
        if new:
            with self._store.writing() as connection:
                for stream in new:
                    self._store.engine.index_versions(connection, stream)
            self._derived.update(new)

    def _page(
        self,
        connection: sqlite3.Connection,
        streams: list[tuple[Stream, int]],
        after: bytes,
        skipped: dict[str, dict[int, int]],
        heads: list[int] | None,
        cut: int,
        passed: dict[str, int] | None = None,
        views: serving.Views = serving.Views(),  # noqa: B008 - it never changes
    ) -> Served:
        """Read a page, and remember the tag of the commit at which it ends."""
        register = Register(self._knowledge.incarnation)
        names = self._knowledge.incarnations()
        with self._store.snapshot(inside=False), self._store.reading(inside=False) as handle:
            page, tag = serving.read_page(
                handle.connection,
                streams,
                serving.Place(after, self._knowledge.state.evolved),
                skipped,
                register,
                names,
                Budget(self._page_rows),
                passed or {},
                views,
            )
        tags = self._knowledge.tags(connection, heads)
        if page.done:
            known = self._knowledge.tags(connection, [page.head])
            if page.head and page.head not in known:
                with self._store.writing() as writer:
                    writer.execute(f"INSERT OR IGNORE INTO {TAGS} VALUES (?, ?)", (page.head, tag))
                known = {page.head: tag}
            tags |= known
        return Served(msgspec.structs.replace(page, cut=cut, tags=tags), register)

    def _rewound(self) -> None:
        """A reader shows a tag that is not ours: the store went back in time unnoticed."""
        with self._committing() as connection:
            renewal.rewound(self._knowledge, connection, self._writing, self.opened_at)
            self.opened_at = self._writing.commit.version

    def _set_back(self, tidings: Tidings, sender: str) -> None:
        """This clock was ahead, and is right now: the sender of a message agrees with it."""
        with self._committing() as connection:
            setting_back.set_back(self._knowledge, connection, self._writing, tidings, sender)
            self.opened_at = self._writing.commit.version
            self._look_ahead(connection)

    def _look_ahead(self, connection: sqlite3.Connection) -> None:
        """Note when the next version from the future is due."""
        times = [relation.next_time(connection) for relation in self._store.engine.timed()]
        self._next = min((stamp for stamp in times if stamp is not None), default=None)
