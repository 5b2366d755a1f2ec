"""The conversation of a site with others: messages in, messages out.

Nothing here does input or output but to the store; transports carry the bytes. Whatever is told to another
site is in the store first, so that a site that dies and comes back stands by what it said.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import msgspec

from everview.engines.sqlite.lineage import Lineage
from everview.engines.sqlite.names import STORE, TAGS
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.streams import Stream
from everview.engines.sqlite.writing import Writing
from everview.errors import EverviewError, SyncError, WireError
from everview.replication import renewal, serving
from everview.replication.applying import Applied, Cut, Outcome
from everview.replication.collecting import EXPIRY_DAYS
from everview.replication.gossip import Register, gossip_of, known_in, members_in
from everview.replication.knowledge import Knowledge
from everview.replication.messages import PROTOCOL, START, Gossip, Message, Page, Refusal, Request
from everview.replication.rights import ALL, Rights
from everview.replication.staging import Staging
from everview.replication.state import Peer
from everview.replication.wire import decode, encode

_AWAITED = 1024
"""How many requests are remembered; an answer to an older one is not taken, and asked for again."""

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


class Conversation:
    """Messages in, messages out. All methods may be called from any thread."""

    def __init__(
        self,
        store: Store,
        writing: Writing,
        *,
        expiry_days: float = EXPIRY_DAYS,
        page_rows: int = serving.PAGE_ROWS,
    ) -> None:
        self._store, self._writing = store, writing
        self._expiry_days, self._page_rows = expiry_days, page_rows
        self._knowledge = Knowledge(store)
        self._lineage = Lineage(store.file, in_memory=store.in_memory)
        self._indexed = False
        self._asked: set[str] = set()
        self._derived: set[str] = set()
        self._next: int | None = None
        # Cut → the incarnation that asked for it, and the groups it was in.
        self._awaited: dict[int, tuple[str, dict[str, str]]] = {}
        # Sender → stream → commits (first, latest] that brought only what it gave, and need not go back.
        self._from: dict[str, dict[str, tuple[int, int]]] = {}
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
                renewal.renew(self._knowledge, connection, retire=strange == "rewound")

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

    # The dialling side.

    def ask(self, address: str, *, give: Served | None = None, incarnation: str | None = None) -> Message:
        """Return a message that asks the peer at an address for what is new, and may answer it, too."""
        with self._telling() as connection:
            if incarnation is None:
                peer = self._knowledge.state.peers.get(address)
                incarnation = "" if peer is None else peer.incarnation
            request = self._request(connection, incarnation, ALL)
            return self._message(request, give)

    def tell(self, give: Served | None) -> Message:
        """Return a message that asks for nothing."""
        with self._telling():
            return self._message(None, give)

    def hear(self, message: Message, data: bytes, address: str, rights: Rights = ALL) -> Applied | None:
        """Take what a message brings; None when its page is one of several, or it has none."""
        self._check(message, rights)
        applied = self._take_page(message, data, rights) if message.page is not None else None
        with self._telling():
            anew = self._meet(message, rights, dialling=bool(address))
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
            applied = self.hear(message, data, "", rights)
            more = message.page is None or (applied is None and not message.page.done)
            again = applied is not None and applied.outcome in (Outcome.GAP, Outcome.LEFT)
            with self._telling() as connection:
                page = None
                if message.request is not None:
                    page = self._serve(connection, message, rights)
                wanted = None
                if more or again:
                    wanted = self._request(connection, message.sites[0], rights)
                return encode(self._message(wanted, page))
        except WireError:
            raise
        except SyncError as error:
            return self._refuse("refused", str(error), retry=error.retry)

    def _refuse(self, code: str, text: str, *, retry: bool) -> bytes:
        sites, names = [self._knowledge.incarnation], [self._store.name]
        refusal = Refusal(code, text, retry)
        return encode(Message(PROTOCOL, self._store.program.hash, sites, names, refusal=refusal))

    def serve(self, message: Message, rights: Rights = ALL) -> Served | None:
        """Return a page of what a message asks for."""
        with self._telling() as connection:
            served = self._serve(connection, message, rights)
            return None if served is None else replace(served, gossip=self._gossip(served.register))

    # Inside.

    @contextmanager
    def _committing(self) -> Iterator[sqlite3.Connection]:
        """A transaction; whatever changed of the state is saved in it."""
        try:
            with self._writing.transaction():
                connection = self._store.writer.connection
                self._knowledge.refresh(connection)
                yield connection
                self._knowledge.save(connection)
                # Whoever hears of this commit will show its tag: now is the cheapest time to remember it.
                connection.execute(
                    f"UPDATE {STORE} SET clock = ?, shown = version", (self._store.clock.last,)
                )
                if self._writing.commit.grown:
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
            self._indexed = True
        with self._store.exclusive():
            connection = self._store.writer.connection
            self._knowledge.refresh(connection)
            head = self._knowledge.head(connection)
            self._knowledge.membership.advance(head, self._store.clock.stamp())
            try:
                yield connection
                if self._knowledge.changed:
                    with self._store.writing() as writer:
                        self._knowledge.save(writer)
                self._lineage.show(self._store, self._knowledge.incarnation)
            except BaseException:
                self._knowledge.forget()
                raise

    def _check(self, message: Message, rights: Rights = ALL) -> None:
        if message.refusal is not None:
            raise SyncError(message.refusal.text, retry=message.refusal.retry)
        if message.program != self._store.program.hash:
            raise SyncError(
                f"the peer runs another program (hash {message.program[:12]}, not "
                f"{self._store.program.hash[:12]}); sites converge only under the same one"
            )
        if message.sites[0] == self._knowledge.incarnation:
            raise SyncError("the peer is this same site, or a copy of its file that is open at the same time")
        if rights.site is not None and message.names[0] != rights.site:
            raise SyncError(
                f"the token belongs to {rights.site!r}, and the site says it is {message.names[0]!r}"
            )

    def _message(self, request: Request | None, served: Served | None) -> Message:
        knowledge = self._knowledge
        register = Register(knowledge.incarnation) if served is None else served.register
        gossip = (served and served.gossip) or self._gossip(register)
        labels = [knowledge.state.names.get(site, "") for site in register.sites]
        page = None if served is None else served.page
        return Message(PROTOCOL, self._store.program.hash, register.sites, labels, request, page, gossip)

    def _gossip(self, register: Register) -> Gossip:
        knowledge = self._knowledge
        served_now = [stream.name for stream in self._servable()]
        collected = {name: knowledge.groups.forgotten_at(name) for name in served_now}
        return gossip_of(knowledge.state, register, knowledge.groups.served(served_now), collected)

    def _meet(self, message: Message, rights: Rights = ALL, *, dialling: bool = False) -> bool:
        """Hear of members and groups; return whether the site is to join anew, and must ask again.

        So does a site that was given up, and one that meets a smaller group than its own. Of two strangers
        the one that was dialled founds what both hold; what it may not give to the other, the other founds.
        """
        knowledge, connection = self._knowledge, self._store.writer.connection
        head = knowledge.head(connection)
        if renewal.knows_another_us(knowledge, connection, message, head):
            self._rewound()
            return True
        knowledge.membership.meet(members_in(message))
        knowledge.state.names.update(zip(message.sites, message.names, strict=True))
        if knowledge.membership.is_expired():
            with self._store.writing() as writer:
                renewal.renew(knowledge, writer, retire=True)
            return True
        if message.sites[0] in knowledge.state.expired:
            knowledge.membership.tell_expired(message.sites[0])
        knowledge.groups.lose_expired_sponsors()
        left: set[str] = set()
        if message.gossip is not None and message.sites[0] not in knowledge.state.expired:
            left, _ = knowledge.groups.settle(message.gossip.groups)
            knowledge.membership.believe(known_in(message))  # a site that is only fed tells it no other way
        request = message.request
        knowledge.groups.decline()
        if message.gossip is not None and request is not None:
            told = {*request.joined, *message.gossip.groups, *message.gossip.provisional}
            knowledge.groups.strike(message.sites[0], request.streams.keys() - told)
        if request is not None:
            wants = [s for s in request.streams if s not in request.joined and rights.may_read(s)]
            if request.sender:  # asked, and not merely overheard
                read = knowledge.state.cursors.get(message.sites[0])
                held = set(request.streams) if dialling and not read else set()
                inputs = self._store.engine.inputs_of
                knowledge.groups.found(stream for stream in wants if not held.issuperset(inputs(stream)))
            knowledge.groups.enlist(message.sites[0], wants)
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
        begun = Staging(connection, sender).last()
        if begun is not None and begun.froms == {name: asked.get(name, START).head for name in begun.froms}:
            return self._await(Request(sender, asked, joined, begun.cut, begun.reached))
        return self._await(Request(sender, asked, joined, self._store.environment.tag(), b""))

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
        vectors = known_in(message).get(reader, {})
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
        return self._page(connection, streams, request.after, skipped, heads, request.cut, passed)

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
    ) -> Served:
        """Read a page, and remember the tag of the commit at which it ends."""
        register = Register(self._knowledge.incarnation)
        names = self._knowledge.incarnations()
        with self._store.snapshot(inside=False), self._store.reading(inside=False) as handle:
            page, tag = serving.read_page(
                handle.connection,
                streams,
                after,
                skipped,
                register,
                names,
                serving.Budget(self._page_rows),
                cut,
                passed or {},
            )
        tags = self._knowledge.tags(connection, heads)
        if page.done:
            known = self._knowledge.tags(connection, [page.head])
            if page.head and page.head not in known:
                with self._store.writing() as writer:
                    writer.execute(f"INSERT OR IGNORE INTO {TAGS} VALUES (?, ?)", (page.head, tag))
                known = {page.head: tag}
            tags |= known
        return Served(msgspec.structs.replace(page, tags=tags), register)

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

    def _take_page(self, message: Message, data: bytes, rights: Rights) -> Applied | None:
        """Stage a page of a cut; at the last one apply it all."""
        page = message.page
        assert page is not None
        if not self._awaits(page):
            return Applied(Outcome.GAP)
        if page.done and not page.after:
            return self._apply(None, message, rights)
        with self._store.writing() as connection:
            staging = Staging(connection, message.sites[0])
            if not staging.follows(page):
                return Applied(Outcome.GAP)
            if not page.done:
                staging.add(page, data)
                return None
        return self._apply(None, message, rights)

    def _apply(self, staged: Iterable[Message] | None, last: Message, rights: Rights) -> Applied:
        """Apply a cut in one commit, and forget its pages, whatever became of it."""
        with self._committing() as connection:
            knowledge, commit = self._knowledge, self._writing.commit
            staging = Staging(connection, last.sites[0])
            if staged is None:
                staged = staging.messages() if last.page is not None and last.page.after else ()
            knowledge.membership.meet(members_in(last))
            knowledge.membership.advance(commit.version - 1, self._store.clock.last)
            cut = Cut(knowledge, connection, commit, staged, last, rights, self._writing.collect)
            if last.request is not None:
                wants = [name for name in last.request.streams if name not in last.request.joined]
                knowledge.groups.enlist(cut.sender, wants)
            found = cut.look()
            if isinstance(found, dict):
                # A stream that is joined by this cut may also grow by what the site held before.
                plain = tuple(name for name in found if name in knowledge.state.joined)
                applied = Applied(
                    Outcome.APPLIED, cut.apply(found), plain, commit.version, len(plain) < len(found)
                )
            else:
                applied = Applied(found)
                if found is Outcome.REWOUND:
                    renewal.rewound(knowledge, connection, self._writing, self.opened_at)
                    self.opened_at = commit.version
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

    def _rewound(self) -> None:
        """A reader shows a tag that is not ours: the store went back in time unnoticed."""
        with self._committing() as connection:
            renewal.rewound(self._knowledge, connection, self._writing, self.opened_at)
            self.opened_at = self._writing.commit.version

    def _look_ahead(self, connection: sqlite3.Connection) -> None:
        """Note when the next version from the future is due."""
        times = [relation.next_time(connection) for relation in self._store.engine.timed()]
        self._next = min((stamp for stamp in times if stamp is not None), default=None)
