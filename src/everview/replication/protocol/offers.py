"""Offers: what a store tells another of itself, from one snapshot.

A greeting says how far it has read the other. News name the partitions that have changed since the other has
read here. A page has what the other lacks of those.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING
from zlib import crc32

from everview.engines.sqlite.derived.reduced import core_of
from everview.engines.sqlite.rows import ledger, peers, serving
from everview.language.partitions import Choices, covers, meet
from everview.replication.cuts.giving import give
from everview.replication.rights.rights import ALL, Rights
from everview.replication.status.status import subject_of
from everview.replication.wire.messages import (
    MOST_CHOSEN,
    MOST_ENDED,
    START,
    Chosen,
    Columns,
    Cursor,
    Ended,
    Greeting,
    Message,
    News,
    Page,
    Place,
)
from everview.replication.wire.sites import Naming

if TYPE_CHECKING:
    from everview.replication.protocol.replica import Replica

__all__ = ["Offers", "scope_of"]


class Offers:
    """What there is to tell."""

    def __init__(self, replica: Replica) -> None:
        self._replica, self._store = replica, replica.store
        self._prepared: set[str] = set()

    def greeting(self, connection: sqlite3.Connection, to: str, rights: Rights = ALL) -> Greeting:
        """Say who this is, and how far it has read another."""
        read, scope = peers.cursor_on(connection, to + rights.writer) if to else (serving.START, 0)
        wants = [name for name in self._replica.shares if self._replica.may_take(name, rights)]
        reads = None if self._store.engine.everything == set(wants) else wants
        chosen, head = self.chosen(connection, rights), Cursor(*serving.head(connection))
        return Greeting(head, Cursor(*read), scope, bytes.fromhex(to), reads, chosen)

    def chosen(self, connection: sqlite3.Connection, rights: Rights = ALL) -> list[Chosen]:
        """Say which values are wanted of relations that are not wanted whole."""
        self._store.ledger.load(connection)
        parts, relations = self._store.ledger.parts, self._store.program.relations
        wanted = {
            name: meet(parts.get(name), rights.part_of(name))
            for name, relation in relations.items()
            if relation.partitioned and name in self._replica.shares
        }
        return [
            Chosen(name, sorted(choices) if len(choices) <= MOST_CHOSEN else [], tag_of(choices))
            for name, choices in wanted.items()
            if choices is not None
        ]

    def news(
        self, connection: sqlite3.Connection, greeting: Greeting, rights: Rights, program: bytes
    ) -> News:
        """Name the partitions that the other wants and that have changed since it has read here."""
        engine = self._store.engine
        wanted = engine.everything if greeting.reads is None else set(greeting.reads)
        shared = self._replica.programs.shared(program, engine.tells, given=True)
        offered = sorted(self._given(wanted.intersection(shared), rights))
        self.prepare(offered)
        scope = scope_of(offered, greeting.chosen, rights)
        since, read = START, greeting.read
        if greeting.to == bytes.fromhex(self._store.incarnation) and scope == greeting.scope:
            known = serving.Cursor(read.version, read.tag)
            since = read if serving.knows(connection, known) else START
        places = self._changed(connection, offered, since.version, rights, greeting.chosen)
        ended = self.ended(connection, since, map(subject_of, self._given(wanted, rights)))
        return News(since, scope, places, serving.head(connection).version, ended)

    def _given(self, streams: Iterable[str], rights: Rights) -> list[str]:
        return [name for name in streams if self._replica.may_give(name, rights)]

    def ended(self, connection: sqlite3.Connection, since: Cursor, relations: Iterable[str]) -> list[Ended]:
        """Return which stores are known to be lost since a cursor, as far as they wrote these relations."""
        told = set(relations)
        found = [one for one in self._replica.endings.told(connection, since.version) if one.stream in told]
        return [Ended(one.stream, bytes.fromhex(one.incarnation), one.last) for one in found[:MOST_ENDED]]

    def _changed(
        self,
        connection: sqlite3.Connection,
        offered: Iterable[str],
        version: int,
        rights: Rights,
        chosen: Iterable[Chosen] = (),
    ) -> list[Place]:
        """Return the partitions and cores of streams that have changed since a version."""
        tells, derives = self._store.engine.tells, self._store.engine.derives
        wanted = {one.stream: frozenset(one.choices) for one in chosen if one.choices or not one.tag}
        changed: dict[str, list[str]] = {}
        for _, stream, value in serving.changed_since(connection, version):
            if rights.covers(stream, value) and (not value or covers(wanted.get(stream), value)):
                changed.setdefault(stream, []).append(value)
        offered = list(offered)
        places = [Place(name, value) for name in offered for value in changed.get(tells[name].partition, ())]
        cores = dict.fromkeys(core for core in map(core_of, offered) if core in derives)
        return places + [Place(core) for core in cores if derives[core].has_news(connection, version)]

    def prepare(self, offered: Iterable[str]) -> None:
        """See to it that what another site asks of views here is found quickly."""
        engine, ledger_ = self._store.engine, self._store.ledger
        cores = {stream: core for stream in offered if (core := core_of(stream)) in engine.derives}
        new = {stream: core for stream, core in cores.items() if stream not in self._prepared}
        if new:
            with self._replica.identity.noting() as connection:
                for core in dict.fromkeys(new.values()):
                    engine.derives[core].prepare(connection)
                ledger.begin_log(connection, ledger_, [s for s in new if s in engine.hollow])
                ledger_.load(connection)
            self._prepared |= new.keys()

    def page(
        self, connection: sqlite3.Connection, message: Message, naming: Naming, rights: Rights
    ) -> tuple[Page, list[Columns], News | None]:
        """Answer what a message asks for; a cut does not end while news change the question."""
        assert message.ask is not None
        engine, may_give = self._store.engine, self._replica.may_give
        shared = self._replica.programs.shared(message.program, engine.tells, given=True)
        offers = {name: engine.tells[name] for name in shared if may_give(name, rights)}
        tellers = {name: teller for name, teller in engine.derives.items() if may_give(name, rights)}
        missed = self._missed(connection, message, offers, rights)
        given = connection, self._store.ledger, offers, message, naming
        with self._store.uncounted():
            page, columns = give(
                *given, tellers=tellers, rights=rights, cells=self._replica.page_cells, ends=missed is None
            )
        return page, columns, missed

    def _missed(
        self, connection: sqlite3.Connection, message: Message, offered: Iterable[str], rights: Rights
    ) -> News | None:
        """Return the news again, where something has changed since it was told that nobody has asked for.

        A commit is told whole, and what a cut ends at is the head of all that was asked for.
        """
        ask, chosen = message.ask, message.greeting.chosen if message.greeting else ()
        assert ask is not None
        asked = [*(wish.place for wish in ask.wishes), *(Place(core.core) for core in ask.cores)]
        known = {*asked, *ask.passed}
        changed = self._changed(connection, sorted(offered), ask.told, rights, chosen)
        more = [one for one in changed if one not in known]
        if not more:
            return None
        return News(ask.since, ask.scope, [*asked, *more], serving.head(connection).version)


def scope_of(streams: Iterable[str], chosen: Iterable[Chosen] = (), rights: Rights = ALL) -> int:
    """Return a short name for what a cursor is true of: streams in order, and values of some of them."""
    parts = [f"{one.stream}={one.tag}" for one in chosen]
    parts += [f"{name}<{tag_of(choices)}" for name, choices in rights.parts]
    return crc32("\0".join([*streams, *parts]).encode())


def tag_of(choices: Choices) -> int:
    """Return what tells choices of values from others; 0 for none."""
    return crc32("\0".join(sorted(choices)).encode())
