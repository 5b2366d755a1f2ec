"""A site's store as others meet it: what it says, asks, gives and takes.

It reads and takes cuts (`cuts/`), and speaks for the store. Dialling is `exchange`'s affair; what is said here
holds for both sides. Whoever may only read has its vectors and cursors used for the answer and forgotten.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from everview.engines.sqlite.lineage import Lineage
from everview.engines.sqlite.rows import identity, ledger, peers, serving
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.refusals import note_refused
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.errors import EverviewError, StoreError, SyncError, WireError
from everview.replication.cuts.applying import Outcome, apply
from everview.replication.cuts.giving import give
from everview.replication.cuts.sites import Named, Naming
from everview.replication.cuts.staging import Staged, Staging, key
from everview.replication.denying import Withheld
from everview.replication.protocol.messages import (
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
    Undone,
    Wish,
)
from everview.replication.protocol.programs import Programs
from everview.replication.protocol.wire import decode, encode
from everview.replication.report import Denied, OnProgress
from everview.replication.rights import ALL, Rights
from everview.replication.standing import replication_status

if TYPE_CHECKING:
    from everview.replication.protocol.exchange import Exchange

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


class Replica:
    """The protocol over one store. All methods may be called from any thread."""

    def __init__(self, store: Store, writing: Writing) -> None:
        self.store, self.writing = store, writing
        self._lineage = Lineage(store.file, in_memory=store.in_memory)
        self._awaited: dict[int, _Question] = {}
        """Questions that are open: who asked, for what."""
        self.repairs: set[str] = set()
        self.programs = Programs(store.program, self.program)
        self.refused = 0
        """How many messages were answered by a refusal for what they say."""
        self._refused_rows: dict[str, list[tuple[str, int, str]]] = {}
        """Sender → rows of its last cut that were refused, until it is told."""
        with store.writing() as connection:
            store.ledger.load(connection)
            self._opened = identity.opened_at(store.ledger)
            if self._lineage.look(connection) is not None:
                identity.renew(connection, store)

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
        with self.store.exclusive():
            connection = self.store.writer.connection
            store = self.store
            store.ledger.load(connection)
            if not (store.ledger.has_met and serving.is_noted(connection, serving.head(connection))):
                with store.writing() as writer:
                    if not store.ledger.has_met:
                        for stored in self.shares.values():
                            for statement in stored.dot_ddl():
                                writer.execute(statement)
                        ledger.meet(writer, store.ledger, self.shares)
                        store.ledger.load(writer)
                    serving.note_head(writer, serving.head(writer))
            self._lineage.show(store, self.incarnation, lambda: ())
            yield connection

    def greeting(self, connection: sqlite3.Connection, to: str, rights: Rights = ALL) -> Greeting:
        """Say who this is, and how far it has read another."""
        read, scope = peers.cursor_on(connection, to) if to else (serving.START, 0)
        wants = [name for name in self.shares if rights.may_write(name)]
        every = len(wants) == len(self.store.program.relations)
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
        wanted = self.shares.keys() if greeting.reads is None else set(greeting.reads)
        tells = self.store.engine.tells
        shared = self.programs.shared(program, tells, given=True)
        offered = sorted(name for name in shared if name in wanted and rights.may_read(name))
        scope = crc32("\0".join(offered).encode())
        since, read = START, greeting.read
        if greeting.to == bytes.fromhex(self.incarnation) and scope == greeting.scope:
            known = serving.Cursor(read.version, read.tag)
            since = read if serving.knows(connection, known) else START
        changed = [(stream, value) for _, stream, value in serving.changed_since(connection, since.version)]
        places = [
            Place(name, value)
            for name in offered
            for stream, value in changed
            if stream == tells[name].partition
        ]
        return News(since, scope, places)

    def is_behind(self, connection: sqlite3.Connection, greeting: Greeting) -> bool:
        """Whether another has read what is not here: the store went back in time."""
        told = serving.Cursor(greeting.read.version, greeting.read.tag)
        return greeting.to == bytes.fromhex(self.incarnation) and serving.is_foreign(connection, told)

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
        wanted = {name for name in taken if rights.may_write(name)}
        staged = Staging(connection, sender).last()
        wishes = []
        for place in news.places:
            if place.stream not in wanted or place.value:
                continue
            number = self.store.ledger.partition(connection, place.stream).number
            had = {} if place.stream in repairs else ledger.vector(connection, number)
            has = self._numbered(connection, {} if staged is None else staged.has.get(key(place), {}))
            whole = place.stream in repairs
            wishes.append(Wish(place, naming.pairs(had), naming.pairs(has), whole))
        if not wishes:
            return None
        cut = self.store.environment.tag()
        self._awaited[cut] = _Question(self.incarnation, news, repairs)
        while len(self._awaited) > _AWAITED:
            del self._awaited[next(iter(self._awaited))]
        return Ask(cut, news.since, wishes)

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
    ) -> tuple[Page, list[Columns]]:
        """Answer what a message asks for."""
        assert message.ask is not None
        tells = self.store.engine.tells
        shared = self.programs.shared(message.program, tells, given=True)
        offers = {name: tells[name] for name in shared if rights.may_read(name)}
        return give(connection, self.store.ledger, offers, message, naming)

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
        if rights.site is not None and named.name != rights.site:
            raise SyncError(
                f"the token belongs to {rights.site!r}, and the site says it is {named.name!r}; "
                f"use a token of {named.name!r}, or a store made with --name {rights.site}"
            )
        if rights.site is not None:
            self._check_known(named, rights.site)
        return named

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
        if not page.done:
            with self.store.writing() as connection:
                self._stage(connection, page, question.news, named, data)
            return Outcome.STAGED
        try:
            with self._committing() as connection:
                staging = Staging(connection, named.sender)
                outcome = apply(self, connection, message, columns, named, staging, question, rights)
                staging.clear()
                if outcome is Outcome.REWOUND:
                    self.rewound(connection)
        except WireError:  # what was staged may be what is wrong
            with self.store.writing() as connection:
                Staging(connection, named.sender).clear()
            raise
        return outcome

    @staticmethod
    def _stage(connection: sqlite3.Connection, page: Page, news: News, named: Named, data: bytes) -> None:
        staging = Staging(connection, named.sender)
        staged = staging.last() or Staged(news, {}, [])
        named.learn(connection)
        for share in page.shares:
            has = staged.has.setdefault(key(share.place), {})
            for place, seen in zip(share.vector[::2], share.vector[1::2], strict=True):
                incarnation = named.incarnations[place]
                has[incarnation] = max(has.get(incarnation, 0), seen)
        staging.add(Staged(news, staged.has, [key(share.place) for share in page.shares]), data)

    @contextmanager
    def _committing(self) -> Iterator[sqlite3.Connection]:
        with self.writing.transaction(), self.store.explained("written to"):
            yield self.store.writer.connection

    def refuse_rows(self, sender: str, stream: str, dots: list[int], why: str) -> None:
        """Remember to tell a sender that rows of its cut were refused."""
        told = self._refused_rows.setdefault(sender, [])
        told += [(stream, dot, why) for dot in dots[: _TOLD_REFUSALS - len(told)]]

    def refusals_for(self, connection: sqlite3.Connection, naming: Naming, sender: str) -> list[Undone]:
        """Return which rows of a sender's last cut were refused, once."""
        found = []
        for stream, dot, why in self._refused_rows.pop(sender, []):
            (site,), (number,) = naming.dots([dot])
            found.append(Undone(stream, site, number, why))
        return found

    def hear_refusals(self, message: Message, named: Named) -> None:
        """Remember which rows that were given another has refused, as far as they are held."""
        if not message.refused:
            return
        with self.store.writing() as connection:
            known = named.known(connection)
            for one in message.refused:
                stored = self.shares.get(one.stream)
                if stored is not None and one.site in known:
                    at = [known[one.site] << 40 | one.number]
                    now_us = self.store.environment.now_us()
                    note_refused(connection, stored, at, one.why, named.name or named.sender, now_us)

    def rewound(self, connection: sqlite3.Connection) -> None:
        """The store went back in time, and opening did not notice: go on as another incarnation."""
        old = identity.renew(connection, self.store)
        commit = self.writing.commit
        identity.rewrite(connection, commit, self.shares.values(), old, self._opened)
        self.store.ledger.forget()
        self.store.ledger.load(connection)
        self._opened = identity.opened_at(self.store.ledger)
        _LOG.warning("%s went back in time: it goes on as %s", self.store.path, self.incarnation)

    def go_back(self) -> None:
        """Do so in a commit of its own."""
        with self._committing() as connection:
            self.rewound(connection)

    def note_address(self, address: str, incarnation: str) -> None:
        """Remember who answers at an address; the time only now and then."""
        now_us, connection = self.store.environment.now_us(), self.store.writer.connection
        with self.store.exclusive():
            if not peers.is_known(connection, address, incarnation, now_us - 60_000_000):
                with self.store.writing() as writer:
                    peers.note_address(writer, address, incarnation, now_us)

    def note_read(self, sender: str, cursor: Cursor, scope: int) -> None:
        """Remember how far another was read, where that is news."""
        with self.store.exclusive():
            wanted = (serving.Cursor(cursor.version, cursor.tag), scope)
            if peers.cursor_on(self.store.writer.connection, sender) != wanted:
                with self.store.writing() as connection:
                    peers.note_cursor(connection, sender, *wanted)

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

    def wait(self, head: int, timeout: float) -> bool:
        """Wait until there is a commit after `head`; return whether there is."""
        if self.head <= head:
            self.writing.wait(timeout)
        return self.head > head

    def withheld(self, data: bytes, rights: Rights) -> Withheld:
        """Return which of the names that a message says its sender may not read here, and not write."""
        message, _ = decode(data)
        if message.greeting is None:
            return Withheld()
        reads = list(self.shares) if message.greeting.reads is None else message.greeting.reads
        return Withheld(
            tuple(name for name in reads if name in self.shares and not rights.may_read(name)),
            tuple(name for name in self.shares if not rights.may_write(name)),
        )

    def denied(self, peer: str, told: Withheld) -> tuple[Denied, ...]:  # noqa: ARG002 - other replicas look
        """Return what this site wanted of a peer, by what that says to withhold."""
        with self.store.exclusive():
            ledger_ = self.store.ledger
            ledger_.load(self.store.writer.connection)
            written = {one.stream for one in ledger_.partitions.values() if one.seen}
        reads = (Denied("read", name) for name in told.reads if name in self.shares)
        return (*reads, *(Denied("write", name) for name in told.writes if name in written))

    def status(self, *, counted: int = 0) -> dict[str, Any]:  # noqa: ARG002
        """Return what there is to say about other sites."""
        with self.store.exclusive():
            return replication_status(self.store.writer.connection)

    def close(self) -> None:
        """Close the store."""
        if self.store.closed:
            return
        with self.store.exclusive():
            if not self.store.closed:
                self._lineage.note(self.store.writer.connection, lambda: ())
        self.store.close()

    closing = None
    due = False

    def awaited(self, name: str) -> str:  # noqa: ARG002
        """Say what of a relation or view has not come from other sites yet; nothing if all has."""
        return ""

    # The listening side.

    def respond(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer a message; WireError for bytes that are none, and the store's own errors."""
        message, columns = decode(data)
        if not self.programs.note(message):
            return self.refuse(OTHER_PROGRAM, "this site runs another program", retry=False)
        named = self.hear(message, rights)
        self.hear_refusals(message, named)
        greets = message.greeting is not None
        taken = None
        if message.page is not None:
            taken = self.take(message, columns, data, named, rights)
        if message.greeting is not None:
            with self.telling() as connection:
                behind = rights.writes != frozenset() and self.is_behind(connection, message.greeting)
            if behind:
                self.go_back()
        with self.telling() as connection:
            naming = Naming(connection, self.store.ledger.site)
            news = page = ask = None
            given: list[Columns] = []
            if message.greeting is not None:
                news = self.news(connection, message.greeting, rights, message.program)
            if message.news is not None:
                ask = self.ask(connection, named.sender, message.news, naming, message.program, rights)
            elif taken is Outcome.STAGED:
                ask = self.ask_on(connection, named.sender, naming, message.program, rights)
            if message.ask is not None:
                page, given = self.give(connection, message, naming, rights)
            greeting = self.greeting(connection, named.sender, rights) if greets or taken else None
            refused = self.refusals_for(connection, naming, named.sender)
            return self.message(
                naming, greeting=greeting, news=news, ask=ask, page=page, columns=given, refused=refused
            )

    def ask_on(
        self,
        connection: sqlite3.Connection,
        sender: str,
        naming: Naming,
        program: bytes,
        rights: Rights = ALL,
    ) -> Ask | None:
        """Ask for the next page of a cut that has begun."""
        staged = Staging(connection, sender).last()
        if staged is None:
            return None
        return self.ask(connection, sender, staged.news, naming, program, rights)

    def answer(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer a message as the listening side; refusals, too."""
        try:
            return self.respond(data, rights)
        except WireError as error:
            return self.refuse("message", str(error), retry=error.retry)
        except SyncError as error:
            _LOG.info("refused a message: %s", error)
            self.refused += 1
            return self.refuse("refused", str(error), retry=bool(error.retry))
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
