"""A site's store as others meet it.

What it says of itself are `offers`, what it asks are `questions`, who it is its `identity`. Dialling is an
`exchange`, and the `listener` answers. All of it holds for both sides.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from everview.engines.sqlite.derived.reduced import core_of
from everview.engines.sqlite.dropping import drop_values, without
from everview.engines.sqlite.endings import Ending, Endings
from everview.engines.sqlite.publications import publication_status
from everview.engines.sqlite.rows import ledger, peers, serving
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.windows.closing import Closing
from everview.engines.sqlite.writing import Writing
from everview.errors import SyncError
from everview.language.partitions import Choices, covers, is_text
from everview.language.relations import Relation
from everview.language.windowed import CLOSED
from everview.replication.cuts.giving import PAGE_CELLS
from everview.replication.protocol.exchange import Exchange
from everview.replication.protocol.identity import Identity
from everview.replication.protocol.listener import Listener
from everview.replication.protocol.offers import Offers
from everview.replication.protocol.programs import Programs
from everview.replication.protocol.questions import Questions
from everview.replication.protocol.refusals import Refusals
from everview.replication.rights import denial
from everview.replication.rights.denial import Withheld
from everview.replication.rights.rights import ALL, Rights
from everview.replication.status.heard import Heard
from everview.replication.status.status import replication_status, subject_of
from everview.replication.transports.report import Denied, OnProgress
from everview.replication.wire.codec import encode, peek
from everview.replication.wire.messages import (
    Ask,
    Columns,
    Cursor,
    Greeting,
    Message,
    News,
    Page,
    Place,
    Undone,
)
from everview.replication.wire.sites import Named, Naming

__all__ = ["Replica"]

_LOG = logging.getLogger("everview")


class Replica:
    """The protocol over one store. All methods may be called from any thread."""

    def __init__(self, store: Store, writing: Writing, *, page_cells: int = PAGE_CELLS) -> None:
        self.store, self.writing, self.page_cells = store, writing, page_cells
        store.ledger.quiet = frozenset(store.engine.hollow)
        self.closing: Closing | None = None
        if CLOSED in self.shares:
            self.closing = writing.door = Closing(store, writing)
        self.programs = Programs(store.program, self.program)
        self.endings = Endings(store, writing)
        self.identity = Identity(store, writing, self.endings, self.closing)
        self.offers, self.questions, self.refusals = Offers(self), Questions(self), Refusals(store)
        self.listener, self.heard = Listener(self), Heard()
        self.repairs: set[str] = set()
        self._warned: set[bytes] = set()

    # Who and what.

    @property
    def incarnation(self) -> str:
        """Who this is, as long as its store has not been copied or put back."""
        return self.store.incarnation

    @property
    def former(self) -> list[str]:
        """Who this was before it was put back."""
        return self.identity.lineage.former

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

    def may_give(self, stream: str, rights: Rights) -> bool:
        """Whether a stream is told to a site; that of a core is, if one of its views is."""
        return any(map(rights.may_read, self._views_of(stream)))

    def may_take(self, stream: str, rights: Rights) -> bool:
        """Whether a stream is taken from a site; that of a core is, if all of its views here are."""
        plans = self.store.engine.plans
        return all(rights.may_write(one) for one in self._views_of(stream) if one == stream or one in plans)

    def hosts(self, place: Place, rights: Rights = ALL) -> bool:
        """Whether a partition is held here, and is one that a site with these rights may write."""
        relation = self.store.program.relations.get(place.stream)
        if relation is None or not relation.partitioned:
            return not place.value
        if not is_text(relation, place.value) or not rights.covers(place.stream, place.value):
            return False
        return covers(self.store.ledger.parts.get(place.stream), place.value)

    def _views_of(self, stream: str) -> tuple[str, ...]:
        return self.store.engine.exchange.views_of.get(core_of(stream), (stream,))

    # What is said.

    @contextmanager
    def telling(self) -> Iterator[sqlite3.Connection]:
        """A snapshot to tell of; whatever is told lies in the store first, and its head is remembered."""
        if self.closing is not None:
            self.closing.meet()
        store, lineage = self.store, self.identity.lineage
        with store.exclusive():
            connection = store.writer.connection
            store.ledger.load(connection)
            if not store.ledger.has_met:
                with store.writing() as writer:
                    for stored in self.shares.values():
                        for statement in stored.dot_ddl():
                            writer.execute(statement)
                    ledger.meet(writer, store.ledger, self.shares)
                    store.ledger.load(writer)
            self._publish(connection)
            lineage.show(store)
            with store.writing():  # so no other process commits while one state is told
                if not serving.head(connection).tag:
                    serving.note_head(connection, store.environment.tag() or 1)
                yield connection
            lineage.show(store)  # should another have committed before

    def _publish(self, connection: sqlite3.Connection) -> None:
        """Write what is due of views that this site publishes, before anybody is told of them."""
        store, now_us = self.store, self.store.environment.now_us()
        if store.engine.is_due(connection, store.ledger.site, now_us):
            with self.identity.committing() as writer:
                store.engine.publish_due(writer, self.writing.commit, now_us)
            store.ledger.load(connection)

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
        shapes, said = self.programs.ours if introduces else None, (greeting, news, ask, page)
        told = Message(self.program, sites, names, *said, shapes=shapes, refused=refused or [])
        return encode(told, columns or ())

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
        if rights.site is not None:
            self._check_name(named, rights.site)
        self.hear_endings(message.news, rights)
        return named

    def hear_endings(self, news: News | None, rights: Rights = ALL) -> None:
        """Remember which stores another calls lost, as far as it may write what they wrote."""
        if news is None or not news.ended:
            return
        takes = {subject_of(stream) for stream in self.shares if self.may_take(stream, rights)}
        told = [Ending(one.stream, one.incarnation.hex(), one.last) for one in news.ended]
        told = [one for one in told if one.stream in takes]
        with self.store.exclusive():
            if found := self.endings.new(self.store.writer.connection, told):
                with self.identity.committing() as connection:
                    self.endings.hear(connection, found)

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

    def _check_name(self, named: Named, site: str) -> None:
        """SyncError unless a sender goes by the name that its token is for, and always has."""
        if named.name != site:
            raise SyncError(
                f"the token belongs to {site!r}, and the site says it is {named.name!r}; "
                f"use a token of {named.name!r}, or a store made with --name {site}"
            )
        with self.store.reading(inside=False) as handle:
            known = handle.connection.execute(
                f"SELECT name FROM {ledger.SITES} WHERE incarnation = ? AND partition = 0", (named.sender,)
            ).fetchone()
        if known is not None and known[0] not in ("", site):
            raise SyncError(
                f"this store is known as {known[0]!r}, and the token belongs to {site!r}; a store that "
                f"is to go by another name is made from a backup: `everview restore --name {site}`"
            )

    def note_address(self, address: str, incarnation: str) -> None:
        """Remember who answers at an address; the time only now and then."""
        now_us, connection = self.store.environment.now_us(), self.store.writer.connection
        with self.store.exclusive():
            if not peers.is_known(connection, address, incarnation, now_us - 60_000_000):
                with self.identity.noting() as writer:
                    peers.note_address(writer, address, incarnation, now_us)

    def note_read(self, sender: str, cursor: Cursor, scope: int) -> None:
        """Remember how far another was read, where that is news."""
        with self.store.exclusive():
            wanted = (serving.Cursor(cursor.version, cursor.tag), scope)
            if peers.cursor_on(self.store.writer.connection, sender) != wanted:
                with self.identity.noting() as connection:
                    peers.note_cursor(connection, sender, *wanted)

    def go_back(self, rights: Rights = ALL) -> None:
        """Go on as another: the store went back in time, as a site with these rights has found out."""
        self.identity.go_back(
            lambda stream, value: self.may_take(stream, rights) and rights.covers(stream, value)
        )

    def drop(self, relation: Relation, values: Choices | None) -> None:
        """Host some values of a relation no more: their rows go here, and nowhere else."""
        engine, writing = self.store.engine, self.writing
        with self.identity.committing() as connection:
            self.store.ledger.load(connection)
            left = without(relation, self.store.ledger.parts.get(relation.name), values)
            stored = engine.relations[relation.name]
            if drop_values(connection, engine, writing.commit, stored, left, writing.collect):
                self.identity.renew(connection, is_gone=True)
            self.store.ledger.forget()

    # Syncing.

    def exchange(self, peer: str, *, on_progress: OnProgress | None = None) -> Exchange:
        """Begin to sync with the peer at an address."""
        return Exchange(self, peer, on_progress=on_progress, repairs=frozenset(self.repairs))

    def answer(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer a message as the listening side; by a refusal, where something is wrong."""
        return self.listener.answer(data, rights)

    def respond(self, data: bytes, rights: Rights = ALL) -> bytes:
        """Answer likewise, but raise WireError for bytes that are no message, and the store's own errors."""
        return self.listener.respond(data, rights)

    def withheld(self, data: bytes, rights: Rights) -> Withheld:
        """Return which of the names that a message says its sender may not read here, and not write."""
        return denial.withheld(self.store, self.programs, data, rights)

    def denied(self, told: Withheld) -> tuple[Denied, ...]:
        """Return what this site wanted of a peer, by what that says to withhold."""
        return denial.denied(self.store, told)

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

    @staticmethod
    def extent(data: bytes) -> tuple[int, int]:
        """Return how many rows a message brings, and up to which commit of its sender."""
        page = peek(data).page
        return (0, 0) if page is None else (sum(share.rows for share in page.shares), page.head.version)

    # Stores that are gone.

    def take_charge(self, *, alone: bool = False) -> bool:
        """Say that this store writes as its source from now on; return whether it may."""
        with self.identity.committing():
            return self.closing is None or self.closing.take_charge(alone=alone)

    def give_up(self, member: str) -> str:
        """Say that a store will not come back, by name or incarnation; return its incarnation."""
        with self.identity.committing() as connection:
            lost = self.endings.named(connection, member)
            self.endings.give_up(connection, lost)
            if self.closing is not None:
                self.closing.give_up(lost)
            return lost

    # What there is to say.

    @property
    def refused(self) -> int:
        """How many messages were answered by a refusal for what they say."""
        return self.listener.refused

    def members(self) -> dict[str, Any]:
        """Return what a server counts: the last commit, who was heard of, what was refused, and alarms."""
        status = self.status()
        counted = {what: len(status[what]) for what in ("refused", "alarms")}
        return {"head": status["head"], "members": list(self.heard.sites(status["head"]))} | counted

    def status(self) -> dict[str, Any]:
        """Return what there is to say about other sites."""
        with self.store.exclusive():
            store, connection = self.store, self.store.writer.connection
            found = replication_status(connection)
            now_us = store.environment.now_us()
            found["readers_ahead"] = sorted(name or one for one, name in self.heard.ahead.items())
            found |= publication_status(store.engine, connection, store.ledger.site, now_us)
            return found if self.closing is None else found | {"windows": self.closing.status()}

    def close(self) -> None:
        """Close the store."""
        if self.store.closed:
            return
        lineage = self.identity.lineage
        with self.store.exclusive():
            if not self.store.closed:
                with suppress(OSError):  # it closes all the same
                    lineage.note(self.store.writer.connection)
        self.store.close()
        with suppress(OSError):
            lineage.seal()
