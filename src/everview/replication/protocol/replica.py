"""A site's store as others meet it: what it says, asks, gives and takes.

It reads and takes cuts (`cuts/`), and speaks for the store. Dialling is `exchange`'s affair; what is said
here holds for both sides. Whoever may only read has its vectors and cursors used for the answer, and
forgotten.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from everview.engines.sqlite.derived.reduced import core_of
from everview.engines.sqlite.publications import publication_status
from everview.engines.sqlite.rows import identity, ledger, peers, serving
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.lineage import Lineage, Strange
from everview.engines.sqlite.rows.refusals import note_refused
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.windows.closing import Closing
from everview.engines.sqlite.writing import Writing
from everview.errors import EverviewError, StoreError, SyncError, WireError
from everview.language.windowed import CLOSED
from everview.planner.published import view_of
from everview.replication.cuts.applying import Outcome, apply
from everview.replication.cuts.derivations import resumes
from everview.replication.cuts.giving import PAGE_CELLS, give
from everview.replication.cuts.sites import Named, Naming
from everview.replication.cuts.staging import Staged, Staging, key
from everview.replication.denying import Withheld
from everview.replication.grants import needed
from everview.replication.protocol.heard import Heard
from everview.replication.protocol.programs import Programs
from everview.replication.report import Denied, OnProgress
from everview.replication.rights import ALL, Rights
from everview.replication.standing import replication_status
from everview.replication.wire.codec import decode, encode, peek
from everview.replication.wire.messages import (
    START,
    Ask,
    Columns,
    Cursor,
    Greeting,
    Message,
    News,
    Page,
    Place,
    Refusal,
    Resume,
    Undone,
    Wish,
)

if TYPE_CHECKING:
    from everview.replication.protocol.exchange import Exchange
    from everview.replication.transports.folder.files import Files

__all__ = ["Replica"]

_LOG = logging.getLogger("everview")

OTHER_PROGRAM = "program"
"""The code of a refusal to a site with another program that has not said what that declares."""

_TOLD_REFUSALS = 1_000

_AWAITED = 256
"""How many questions may be open at once; of more the oldest is forgotten, and asked again."""


class _Question(NamedTuple):
    """What was asked, as whom; what of it is read again whole."""

    incarnation: str
    news: News
    repairs: frozenset[str]
    places: frozenset[Place]
    after: int
    """The question whose answer was staged last: two exchanges may ask for one cut at a time."""


class Replica:
    """The protocol over one store. All methods may be called from any thread."""

    def __init__(self, store: Store, writing: Writing, *, page_cells: int = PAGE_CELLS) -> None:
        self.store, self.writing, self._page_cells = store, writing, page_cells
        self._lineage = Lineage(store.file, in_memory=store.in_memory)
        self._prepared: set[str] = set()
        store.ledger.quiet = frozenset(store.engine.hollow)
        self._awaited: dict[int, _Question] = {}
        """Questions that are open: who asked, for what."""
        self.repairs: set[str] = set()
        self._warned: set[bytes] = set()
        self.programs = Programs(store.program, self.program)
        self.refused = 0
        """How many messages were answered by a refusal for what they say."""
        self.heard = Heard()
        self.greetings: dict[str, Greeting] = {}
        """What others whom this store has dialled have said last of how far they have read it."""
        self._refused_rows: dict[str, list[tuple[str, int, str]]] = {}
        """Sender → rows of its last cut that were refused, until it is told."""
        self._born: set[str] = set()
        """The incarnations that this process took: of these nobody can know more than it does."""
        self._former: dict[int, dict[str, int]] = {}
        """Sites that this store was when it turned out to have gone back → their last numbers, by stream."""
        self.closing: Closing | None = None
        if CLOSED in self.shares:
            self.closing = writing.door = Closing(store, writing)
        self._look()

    def _look(self) -> None:
        """Go on as another incarnation if the file was copied, put back, or is called something else."""
        with self.store.writing() as connection, self.store.explained("written to"):
            self.store.ledger.load(connection)
            strange = self._lineage.strange(connection)
            is_another = strange is not None or identity.is_renamed(connection, self.store)
            if not is_another:
                self._lineage.mark(connection)
                if not self._lineage.is_unbroken:
                    identity.note_opening(connection, self.store.ledger)
        if is_another:
            with self._committing() as connection:
                self._lineage.mark(connection)
                self._renew(connection, is_gone=strange is not Strange.COPIED)
        with self.store.exclusive():
            self.store.ledger.load(self.store.writer.connection)
            self._began = {one.number: one.seen for one in self.store.ledger.partitions.values()}

    def _renew(self, connection: sqlite3.Connection, *, is_gone: bool) -> int:
        """Take a new incarnation; return the number of the old one. It may live on, or be gone."""
        former = self.incarnation
        self._lineage.was(former)
        old = identity.renew(connection, self.store)
        self._born.add(self.incarnation)
        self.store.ledger.load(connection)
        if self.closing is not None:
            self.closing.renewed(former, is_gone=is_gone)
        return old

    # Who and what.

    @property
    def incarnation(self) -> str:
        """Who this is, as long as its store has not been copied or put back."""
        return self.store.incarnation

    @property
    def head(self) -> int:
        """The number of the last commit."""
        with self.store.reading(inside=False) as handle:
            return serving.head(handle.connection).version

    @property
    def shares(self) -> dict[str, StoredRows]:
        """What is held here and read from others, by stream."""
        return self.store.engine.shares

    @property
    def program(self) -> bytes:
        """What tells programs apart on the wire."""
        return bytes.fromhex(self.store.program.hash)[:8]

    # What is said.

    @contextmanager
    def telling(self) -> Iterator[sqlite3.Connection]:
        """A snapshot to tell of; whatever is told lies in the store first, and its head is remembered."""
        if self.closing is not None:
            self.closing.meet()
        with self.store.exclusive():
            connection = self.store.writer.connection
            store = self.store
            store.ledger.load(connection)
            if not store.ledger.has_met:
                with store.writing() as writer:
                    for stored in self.shares.values():
                        for statement in stored.dot_ddl():
                            writer.execute(statement)
                    ledger.meet(writer, store.ledger, self.shares)
                    store.ledger.load(writer)
            self._publish(connection)
            self._lineage.show(store)
            with store.writing():  # so no other process commits while one state is told
                if not serving.head(connection).tag:
                    serving.note_head(connection, store.environment.tag() or 1)
                yield connection
            self._lineage.show(store)  # should another have committed before

    def _publish(self, connection: sqlite3.Connection) -> None:
        """Write what is due of views that this site publishes, before anybody is told of them."""
        store, now_us = self.store, self.store.environment.now_us()
        if store.engine.is_due(connection, store.ledger.site, now_us):
            with self._committing() as writer:
                store.engine.publish_due(writer, self.writing.commit, now_us)
            store.ledger.load(connection)

    def greeting(self, connection: sqlite3.Connection, to: str, rights: Rights = ALL) -> Greeting:
        """Say who this is, and how far it has read another."""
        read, scope = peers.cursor_on(connection, to + rights.writer) if to else (serving.START, 0)
        wants = [name for name in self.shares if self.may_take(name, rights)]
        every = self.store.engine.everything == set(wants)
        return Greeting(
            Cursor(*serving.head(connection)),
            Cursor(*read),
            scope,
            bytes.fromhex(to),
            None if every else wants,
        )

    def news(
        self, connection: sqlite3.Connection, greeting: Greeting, rights: Rights, program: bytes
    ) -> News:
        """Name the partitions that the other wants and that have changed since it has read here."""
        wanted = self.store.engine.everything if greeting.reads is None else set(greeting.reads)
        tells = self.store.engine.tells
        shared = self.programs.shared(program, tells, given=True)
        offered = sorted(name for name in shared if name in wanted and self.may_give(name, rights))
        self.prepare(offered)
        scope = crc32("\0".join(offered).encode())
        since, read = START, greeting.read
        if greeting.to == bytes.fromhex(self.incarnation) and scope == greeting.scope:
            known = serving.Cursor(read.version, read.tag)
            since = read if serving.knows(connection, known) else START
        places = self._changed(connection, offered, since.version)
        return News(since, scope, places, serving.head(connection).version)

    def _changed(self, connection: sqlite3.Connection, offered: Iterable[str], version: int) -> list[Place]:
        """Return the partitions and cores of streams that have changed since a version."""
        tells, derives = self.store.engine.tells, self.store.engine.derives
        changed = [(stream, value) for _, stream, value in serving.changed_since(connection, version)]
        offered = list(offered)
        places = [
            Place(name, value)
            for name in offered
            for stream, value in changed
            if stream == tells[name].partition
        ]
        cores = dict.fromkeys(core for core in map(core_of, offered) if core in derives)
        return places + [Place(core) for core in cores if derives[core].has_news(connection, version)]

    def _missed(self, connection: sqlite3.Connection, ask: Ask, offered: Iterable[str]) -> News | None:
        """Return the news again, where something has changed since it was told that nobody has asked for.

        A commit is told whole, and what a cut ends at is the head of all that was asked for.
        """
        asked = [*(wish.place for wish in ask.wishes), *(Place(core.core) for core in ask.cores)]
        known = {*asked, *ask.passed}
        more = [one for one in self._changed(connection, sorted(offered), ask.told) if one not in known]
        if not more:
            return None
        return News(ask.since, ask.scope, [*asked, *more], serving.head(connection).version)

    def prepare(self, offered: Iterable[str]) -> None:
        """See to it that what another site asks of views here is found quickly."""
        engine = self.store.engine
        cores = {stream: core for stream in offered if (core := core_of(stream)) in engine.derives}
        new = {stream: core for stream, core in cores.items() if stream not in self._prepared}
        if new:
            with self._noting() as connection:
                for core in dict.fromkeys(new.values()):
                    engine.derives[core].prepare(connection)
                ledger.begin_log(connection, self.store.ledger, [s for s in new if s in engine.hollow])
                self.store.ledger.load(connection)
            self._prepared |= new.keys()

    def may_give(self, stream: str, rights: Rights) -> bool:
        """Whether a stream is told to a site; that of a core is, if one of its views is."""
        views = self.store.engine.exchange.views_of.get(core_of(stream), (stream,))
        return any(map(rights.may_read, views))

    def may_take(self, stream: str, rights: Rights) -> bool:
        """Whether a stream is taken from a site; that of a core is, if all of its views here are."""
        views = self.store.engine.exchange.views_of.get(core_of(stream), (stream,))
        return all(
            rights.may_write(view) for view in views if view == stream or view in self.store.engine.plans
        )

    def is_behind(self, connection: sqlite3.Connection, greeting: Greeting) -> bool:
        """Whether another has read what is not here: the store went back in time."""
        told = serving.Cursor(greeting.read.version, greeting.read.tag)
        is_meant = greeting.to == bytes.fromhex(self.incarnation) and self.incarnation not in self._born
        return is_meant and serving.is_foreign(connection, told)

    def is_overtaken(self, connection: sqlite3.Connection, stream: str, seen: Mapping[int, int]) -> bool:
        """Whether somebody has seen more of what this store wrote to a stream than it knows of."""
        own = self.store.ledger
        own.load(connection)
        if self.incarnation not in self._born and seen.get(own.site, 0) > own.written(stream):
            return True
        mine = ledger.vector(connection, own.partition(connection, stream).number)
        return any(
            stream in opened and seen.get(site, 0) > mine.get(site, 0) > opened[stream]
            for site, opened in self._former.items()
        )

    def ask(
        self,
        connection: sqlite3.Connection,
        sender: str,
        news: News,
        naming: Naming,
        program: bytes,
        rights: Rights = ALL,
        repairs: frozenset[str] = frozenset(),
    ) -> Ask | None:
        """Ask for what has changed, of what is hosted here and may be written by the sender."""
        taken = self.programs.shared(program, self.shares, given=False)
        wanted = {name for name in taken if self.may_take(name, rights)}
        staged = Staging(connection, sender + rights.writer).last()
        wishes = []
        for place in news.places:
            if place.stream not in wanted or place.value:
                continue
            number = self.store.ledger.partition(connection, place.stream).number
            had = {} if place.stream in repairs else ledger.vector(connection, number)
            has = self._numbered(connection, {} if staged is None else staged.has.get(key(place), {}))
            whole = place.stream in repairs
            wishes.append(Wish(place, naming.pairs(had), naming.pairs(has), whole))
        received = self.store.engine.received
        begun = {} if staged is None else staged.resumes
        cores = [
            begun.get(place.stream, Resume(place.stream, START, []))
            for place in news.places
            if place.stream in received and self.may_take(place.stream, rights)
        ]
        if not wishes and not cores:
            return None
        cut = self.store.environment.tag()
        asked = frozenset([*(wish.place for wish in wishes), *(Place(core.core) for core in cores)])
        after = 0 if staged is None else staged.cut
        self._awaited[cut] = _Question(self.incarnation, news, repairs, asked, after)
        while len(self._awaited) > _AWAITED:
            del self._awaited[next(iter(self._awaited))]
        passed = [place for place in news.places if place not in asked]
        return Ask(cut, news.since, wishes, cores, passed, news.scope, news.head)

    @staticmethod
    def _numbered(connection: sqlite3.Connection, vector: dict[str, int]) -> dict[int, int]:
        if not vector:
            return {}
        return {
            number: vector[incarnation]
            for incarnation, number in connection.execute(f"SELECT incarnation, number FROM {ledger.SITES}")
            if incarnation in vector
        }

    def message(
        self,
        naming: Naming,
        *,
        greeting: Greeting | None = None,
        news: News | None = None,
        ask: Ask | None = None,
        page: Page | None = None,
        columns: list[Columns] | None = None,
        introduces: bool = False,
        refused: list[Undone] | None = None,
    ) -> bytes:
        """Return a message of this site."""
        sites, names = naming.listed(named=page is not None)
        shapes = self.programs.ours if introduces else None
        message = Message(
            self.program, sites, names, greeting, news, ask, page, shapes=shapes, refused=refused or []
        )
        return encode(message, columns or ())

    def give(
        self, connection: sqlite3.Connection, message: Message, naming: Naming, rights: Rights
    ) -> tuple[Page, list[Columns], News | None]:
        """Answer what a message asks for; a cut does not end while news change the question."""
        assert message.ask is not None
        tells = self.store.engine.tells
        shared = self.programs.shared(message.program, tells, given=True)
        offers = {name: tells[name] for name in shared if self.may_give(name, rights)}
        derives = self.store.engine.derives
        tellers = {name: derives[name] for name in derives if self.may_give(name, rights)}
        given = connection, self.store.ledger, offers, message, naming
        missed = self._missed(connection, message.ask, offers)
        with self.store.uncounted():
            page, columns = give(*given, tellers=tellers, cells=self._page_cells, ends=missed is None)
        return page, columns, missed

    # What is heard.

    def hear(self, message: Message, rights: Rights = ALL) -> Named:
        """Check whose message it is; SyncError if it is not for us."""
        named = Named(message.sites, message.names)
        if message.refusal is not None:
            raise SyncError(message.refusal.text, retry=message.refusal.retry)
        if named.sender == self.incarnation:
            raise SyncError(
                "the peer is this same site, or a copy of its file that is open at the same time; "
                "name another peer, or make the copy by `everview backup` and `everview restore`"
            )
        if not self.programs.note(message):
            raise SyncError(
                "the peer runs another program, and does not say what that declares; a newer Everview does"
            )
        self._say_wider(message, named)
        if rights.site is not None and named.name != rights.site:
            raise SyncError(
                f"the token belongs to {rights.site!r}, and the site says it is {named.name!r}; "
                f"use a token of {named.name!r}, or a store made with --name {rights.site}"
            )
        if rights.site is not None:
            self._check_known(named, rights.site)
        return named

    def _say_wider(self, message: Message, named: Named) -> None:
        """Warn once of a peer whose program has more columns: its rows cannot be kept here."""
        wider = self.programs.wider(message.program)
        if wider and message.program not in self._warned:
            self._warned.add(message.program)
            _LOG.warning(
                "%s runs a later program, in which %s has more columns; rows of it go there, and none come "
                "from there until this site is migrated, too",
                named.name or named.sender,
                ", ".join(wider),
            )

    def _check_known(self, named: Named, site: str) -> None:
        with self.store.reading(inside=False) as handle:
            known = handle.connection.execute(
                f"SELECT name FROM {ledger.SITES} WHERE incarnation = ?", (named.sender,)
            ).fetchone()
        if known is not None and known[0] not in ("", site):
            raise SyncError(
                f"this store is known as {known[0]!r}, and the token belongs to {site!r}; a store that "
                f"is to go by another name is made from a backup: `everview restore --name {site}`"
            )

    def take(
        self, message: Message, columns: list[Columns], data: bytes, named: Named, rights: Rights
    ) -> Outcome:
        """Take a page: stage it, or apply the whole cut if it is the last one."""
        page = message.page
        assert page is not None
        question = self._awaited.pop(page.cut, None)
        if question is None or question.incarnation != self.incarnation:  # not asked for, or as another
            return Outcome.GAP
        told = [share.place for share in page.shares] + [Place(one.core) for one in page.derived]
        if not question.places.issuperset(told):
            raise WireError("a page tells what nobody has asked for", where="section")
        sender = named.sender + rights.writer
        if not page.done:
            with self.store.writing() as connection:
                staging = Staging(connection, sender)
                if staging.reached() != question.after:
                    return Outcome.GAP
                self._stage(staging, connection, page, question.news, named, data)
            return Outcome.STAGED
        try:
            with self._committing() as connection:
                staging = Staging(connection, sender)
                if staging.reached() != question.after:
                    return Outcome.GAP
                outcome = apply(self, connection, message, columns, named, staging, question, rights)
                staging.clear()
                if self.writing.commit.grown:  # it is told soon: that need not be another commit
                    serving.note_head(connection, self.store.environment.tag() or 1)
                    self._lineage.told(connection)
        except EverviewError:  # what was staged may be what is wrong
            with self.store.writing() as connection:
                Staging(connection, sender).clear()
            raise
        return outcome

    @staticmethod
    def _stage(
        staging: Staging, connection: sqlite3.Connection, page: Page, news: News, named: Named, data: bytes
    ) -> None:
        staged = staging.last() or Staged(news, {}, [])
        named.learn(connection)
        for share in page.shares:
            has = staged.has.setdefault(key(share.place), {})
            for place, seen in zip(share.vector[::2], share.vector[1::2], strict=True):
                incarnation = named.incarnations[place]
                has[incarnation] = max(has.get(incarnation, 0), seen)
        here = [key(share.place) for share in page.shares]
        here += [key(Place(core)) for core in dict.fromkeys(derived.core for derived in page.derived)]
        staging.add(Staged(news, staged.has, here, staged.resumes | resumes(page), page.cut), data)

    @contextmanager
    def _committing(self) -> Iterator[sqlite3.Connection]:
        with self.writing.transaction(), self.store.explained("written to"):
            yield self.store.writer.connection

    def refuse_rows(self, sender: str, stream: str, dots: list[int], why: str) -> None:
        """Remember to tell a sender that rows of its cut were refused."""
        told = self._refused_rows.setdefault(sender, [])
        told += [(stream, dot, why) for dot in dots[: _TOLD_REFUSALS - len(told)]]

    def refusals_for(self, naming: Naming, sender: str) -> list[Undone]:
        """Return which rows of a sender's last cut were refused, once."""
        found = []
        for stream, dot, why in self._refused_rows.pop(sender, []):
            (site,), (number,) = naming.dots([dot])
            found.append(Undone(stream, site, number, why))
        return found

    def hear_refusals(self, message: Message, named: Named, rights: Rights = ALL) -> None:
        """Remember which rows another has refused, as far as they are held and it may write."""
        if not message.refused:
            return
        with self.store.writing() as connection:
            known = named.known(connection)
            for one in message.refused:
                stored = self.shares.get(one.stream)
                if stored is not None and one.site in known and self.may_take(one.stream, rights):
                    at = [known[one.site] << 40 | one.number]
                    now_us = self.store.environment.now_us()
                    note_refused(connection, stored, at, one.why, named.name or named.sender, now_us)

    def rewound(self, connection: sqlite3.Connection, streams: Collection[str]) -> None:
        """The store went back in time, and opening did not notice: go on as another incarnation.

        Known by what others have seen of these streams: others are as they were, until somebody knows more of
        them, too.
        """
        streams = streams if self.closing is None else self.closing.as_one(streams)
        partitions, hollow = self.store.ledger, self.store.engine.hollow
        written = {name: stored for name, stored in self.shares.items() if name not in hollow}
        if self.incarnation not in self._born:
            opened = identity.opened_at(connection)
            numbers = {name: partitions.partition(connection, name).number for name in written}
            unsure = sum(max(self._began.get(one, 0) - since, 0) for one, since in opened.items())
            if unsure:
                _LOG.warning("up to %d rows of %s may be known to others twice", unsure, self.store.path)
            old = self._renew(connection, is_gone=True)
            self._former[old] = {name: opened.get(number, 0) for name, number in numbers.items()}
        for old, since in self._former.items():
            again = [written[name] for name in written if name in streams and name in since]
            before = {
                partitions.partition(connection, one.stream).number: since.pop(one.stream) for one in again
            }
            identity.rewrite(connection, self.writing.commit, again, old, before)
        self.store.ledger.forget()
        self.store.ledger.load(connection)
        if self.closing is not None:
            self.closing.rewound()
        _LOG.warning("%s went back in time: it goes on as %s", self.store.path, self.incarnation)

    def take_charge(self, *, alone: bool = False) -> bool:
        """Say that this store writes as its source from now on; return whether it may."""
        with self._committing():
            return self.closing is None or self.closing.take_charge(alone=alone)

    def give_up(self, member: str) -> str:
        """Wait no longer for a store that takes part in closing windows; return its incarnation."""
        with self._committing():
            return "" if self.closing is None else self.closing.give_up(member)

    def go_back(self, rights: Rights = ALL) -> None:
        """Do so in a commit of its own, for a site that has read what is not here."""
        with self._committing() as connection:
            self.rewound(connection, [name for name in self.shares if self.may_take(name, rights)])

    def note_address(self, address: str, incarnation: str) -> None:
        """Remember who answers at an address; the time only now and then."""
        now_us, connection = self.store.environment.now_us(), self.store.writer.connection
        with self.store.exclusive():
            if not peers.is_known(connection, address, incarnation, now_us - 60_000_000):
                with self._noting() as writer:
                    peers.note_address(writer, address, incarnation, now_us)

    def note_read(self, sender: str, cursor: Cursor, scope: int) -> None:
        """Remember how far another was read, where that is news."""
        with self.store.exclusive():
            wanted = (serving.Cursor(cursor.version, cursor.tag), scope)
            if peers.cursor_on(self.store.writer.connection, sender) != wanted:
                with self._noting() as connection:
                    peers.note_cursor(connection, sender, *wanted)

    @contextmanager
    def _noting(self) -> Iterator[sqlite3.Connection]:
        """A transaction to note something in: that of what is being told, or one of its own."""
        connection = self.store.writer.connection
        if connection.in_transaction:
            yield connection
        else:
            with self.store.writing():
                yield connection

    # Life.

    def exchange(self, peer: str, *, on_progress: OnProgress | None = None) -> Exchange:
        """Begin to sync with the peer at an address."""
        from everview.replication.protocol.exchange import Exchange  # noqa: PLC0415 - it is made of a replica

        return Exchange(self, peer, on_progress=on_progress, repairs=frozenset(self.repairs))

    @contextmanager
    def repairing(self, streams: Iterable[str]) -> Iterator[None]:
        """Read these again whole in the exchanges that begin meanwhile, whatever was seen of them."""
        self.repairs |= set(streams)
        try:
            yield
        finally:
            self.repairs -= set(streams)

    @cached_property
    def files(self) -> Files:
        """The store as a folder sees it."""
        from everview.replication.transports.folder.files import Files  # noqa: PLC0415 - they are made of a replica

        return Files(self)

    @property
    def former(self) -> list[str]:
        """Who this was before it was put back."""
        return self._lineage.former

    def wait(self, head: int, timeout: float) -> bool:
        """Wait until there is a commit after `head`; return whether there is."""
        if self.head <= head:
            self.writing.wait(timeout)
        return self.head > head

    @staticmethod
    def extent(data: bytes) -> tuple[int, int]:
        """Return how many rows a message brings, and up to which commit of its sender."""
        page = peek(data).page
        return (0, 0) if page is None else (sum(share.rows for share in page.shares), page.head.version)

    def members(self) -> dict[str, Any]:
        """Return what a server counts: the last commit, who was heard of, what was refused, and alarms."""
        status = self.status()
        counted = {what: len(status[what]) for what in ("refused", "alarms")}
        return {"head": status["head"], "members": list(self.heard.sites(status["head"]))} | counted

    def withheld(self, data: bytes, rights: Rights) -> Withheld:
        """Return which of the names that a message says its sender may not read here, and not write."""
        message, _ = decode(data)
        if message.greeting is None or not self.programs.note(message):
            return Withheld()
        engine, names = self.store.engine, list(self.store.program.names())
        both = self.programs.declared(message.program, [*self.shares, *engine.received])
        wanted = both if message.greeting.reads is None else message.greeting.reads
        reads = {view_of(one) for one in wanted if one in engine.tells and not rights.may_read(one)}
        views_of, plans = engine.exchange.views_of, engine.plans
        taken = (view for one in both for view in views_of.get(one, (view_of(one),)) if view in plans)
        writes = {
            view for view in (*taken, *map(view_of, both & set(self.shares))) if not rights.may_write(view)
        }
        return Withheld(tuple(filter(reads.__contains__, names)), tuple(filter(writes.__contains__, names)))

    def denied(self, told: Withheld) -> tuple[Denied, ...]:
        """Return what this site wanted of a peer, by what that says to withhold."""
        with self.store.exclusive():
            ledger_ = self.store.ledger
            ledger_.load(self.store.writer.connection)
            written = {view_of(one.stream) for one in ledger_.partitions.values() if one.seen}
        exchange, views = self.store.engine.exchange, self.store.program.views
        for core in map(exchange.all_cores.__getitem__, self.store.engine.derives):
            if not written.isdisjoint(core.inputs):
                written |= {one for one in exchange.views_of[core.name] if views[one].authority is None}
        needs, wanted = needed(self.store.engine.exchange), set(map(view_of, self.shares))
        reads = (
            Denied("read", name, tuple(view for view, others in needs.items() if name in others))
            for name in told.reads
            if name in wanted
        )
        return (*reads, *(Denied("write", name) for name in told.writes if name in written))

    def status(self) -> dict[str, Any]:
        """Return what there is to say about other sites."""
        with self.store.exclusive():
            store, connection = self.store, self.store.writer.connection
            found = replication_status(connection)
            now_us = store.environment.now_us()
            found |= publication_status(store.engine, connection, store.ledger.site, now_us)
            return found if self.closing is None else found | {"windows": self.closing.status()}

    def close(self) -> None:
        """Close the store."""
        if self.store.closed:
            return
        with self.store.exclusive():
            if not self.store.closed:
                with suppress(OSError):  # it closes all the same
                    self._lineage.note(self.store.writer.connection)
        self.store.close()
        with suppress(OSError):
            self._lineage.seal()

    # The listening side.

    def respond(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer a message, or say why not; WireError for bytes that are none, and the store's own errors."""
        try:
            return self._respond(data, rights)
        except WireError:
            raise
        except SyncError as error:
            _LOG.info("refused a message: %s", error)
            self.refused += 1
            return self.refuse("refused", str(error), retry=bool(error.retry))

    def _respond(self, data: bytes, rights: Rights) -> bytes:
        message, columns = decode(data)
        if not self.programs.note(message):
            return self.refuse(OTHER_PROGRAM, "this site runs another program", retry=False)
        named = self.hear(message, rights)
        self.hear_refusals(message, named, rights)
        greets = message.greeting is not None
        taken = None
        if message.page is not None:
            before = self.head
            taken = self.take(message, columns, data, named, rights)
            if taken is Outcome.APPLIED and self.head == before + 1:
                self.heard.brought(named.sender, before)
        if message.greeting is not None:
            now_us = self.store.environment.now_us()
            self.heard.note(named.sender, named.name, message.greeting, self.incarnation, now_us)
            with self.telling() as connection:
                behind = rights.writes != frozenset() and self.is_behind(connection, message.greeting)
            if behind:
                self.go_back(rights)
        with self.telling() as connection:
            naming = Naming(connection, self.store.ledger.site)
            news = page = ask = None
            given: list[Columns] = []
            if message.greeting is not None:
                news = self.news(connection, message.greeting, rights, message.program)
            if message.news is not None and self._follows(connection, named.sender, message.news):
                ask = self.ask(connection, named.sender, message.news, naming, message.program, rights)
            elif taken is Outcome.STAGED:
                ask = self.ask_on(connection, named.sender, naming, message.program, rights)
            if message.ask is not None:
                page, given, missed = self.give(connection, message, naming, rights)
                news = missed or news
            if page.done if page is not None else news is not None and not news.places:
                self.heard.has(named.sender, serving.head(connection).version)
            greeting = self.greeting(connection, named.sender, rights) if greets or taken else None
            refused = self.refusals_for(naming, named.sender)
            return self.message(
                naming,
                greeting=greeting,
                news=news,
                ask=ask,
                page=page,
                columns=given,
                introduces=message.shapes is not None,
                refused=refused,
            )

    @staticmethod
    def _follows(connection: sqlite3.Connection, sender: str, news: News) -> bool:
        """Whether news begin no later than what was read of their sender: else removals would be missed."""
        (read, tag), _ = peers.cursor_on(connection, sender)
        since = news.since
        return since == START or since.version < read or (since.version, since.tag) == (read, tag)

    def note_greeting(self, sender: str, message: Message) -> None:
        """Remember how far another has read this store, to name the news to it with the next greeting."""
        if message.greeting is not None and message.program == self.program:
            self.greetings.pop(sender, None)
            self.greetings[sender] = message.greeting
            if len(self.greetings) > _AWAITED:
                del self.greetings[next(iter(self.greetings))]

    def ask_on(
        self,
        connection: sqlite3.Connection,
        sender: str,
        naming: Naming,
        program: bytes,
        rights: Rights = ALL,
    ) -> Ask | None:
        """Ask for the next page of a cut that has begun."""
        staged = Staging(connection, sender + rights.writer).last()
        if staged is None:
            return None
        return self.ask(connection, sender, staged.news, naming, program, rights)

    def answer(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer a message as the listening side; refusals, too."""
        try:
            return self.respond(data, rights)
        except WireError as error:
            return self.refuse("message", str(error), retry=error.retry)
        except StoreError as error:
            return self.refuse("store", str(error), retry=True)
        except EverviewError as error:
            return self.refuse("error", str(error), retry=False)

    def refuse(self, code: str, text: str, *, retry: bool) -> bytes:
        """Say that and why nothing is answered."""
        refusal = Refusal(code, text, retry)
        shapes = self.programs.ours if code == OTHER_PROGRAM else None
        own = [bytes.fromhex(self.incarnation)]
        return encode(Message(self.program, own, [self.store.name], refusal=refusal, shapes=shapes))
