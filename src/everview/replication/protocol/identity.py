"""Identity: which incarnation speaks for a store, and what happens if the store went back in time.

Opening compares the file with what lies beside it (`rows.lineage`). What slips through a peer finds out: it
knows more of the incarnation than the store does itself. Then the store takes a new one, and the rows that it
wrote since it was opened get dots of that (`rows.identity`).
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from everview.engines.sqlite.endings import Endings
from everview.engines.sqlite.rows import identity, ledger, serving
from everview.engines.sqlite.rows.lineage import Lineage, Strange
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.windows.closing import Closing
from everview.engines.sqlite.writing import Writing
from everview.replication.wire.messages import Greeting

__all__ = ["Identity"]

_LOG = logging.getLogger("everview")


class Identity:
    """Who a store is to others, and who it was."""

    def __init__(self, store: Store, writing: Writing, endings: Endings, closing: Closing | None) -> None:
        self._store, self._writing, self._endings, self._closing = store, writing, endings, closing
        self.lineage = Lineage(store.file, in_memory=store.in_memory)
        self._born: set[str] = set()
        """The incarnations that this process took: nobody can know more of these than it does."""
        self._former: dict[int, dict[str, int]] = {}
        """Sites that this store was when it turned out to have gone back → their last numbers, by stream."""
        self._look()
        with store.exclusive():
            store.ledger.load(store.writer.connection)
            self._began = {one.number: one.seen for one in store.ledger.partitions.values()}

    def _look(self) -> None:
        """Go on as another incarnation if the file was copied, put back, or is called something else."""
        store, lineage = self._store, self.lineage
        with store.writing() as connection, store.explained("written to"):
            store.ledger.load(connection)
            strange = lineage.strange(connection)
            is_another = strange is not None or identity.is_renamed(connection, store)
            if not is_another:
                lineage.mark(connection)
                if not lineage.is_unbroken:
                    identity.note_opening(connection, store.ledger)
        if is_another:
            with self.committing() as connection:
                lineage.mark(connection)
                self._renew(connection, is_gone=strange is not Strange.COPIED)

    def _renew(self, connection: sqlite3.Connection, *, is_gone: bool) -> int:
        """Take a new incarnation; return the number of the old one. It may live on, or be gone."""
        former = self._store.incarnation
        self.lineage.was(former)
        old = identity.renew(connection, self._store)
        self._born.add(self._store.incarnation)
        self._store.ledger.load(connection)
        if is_gone:
            self._endings.give_up(connection, former)
        if self._closing is not None:
            self._closing.renewed(former, is_gone=is_gone)
        return old

    @contextmanager
    def committing(self) -> Iterator[sqlite3.Connection]:
        """A transaction whose writes become one commit."""
        with self._writing.transaction(follows=True), self._store.explained("written to"):
            yield self._store.writer.connection

    @contextmanager
    def noting(self) -> Iterator[sqlite3.Connection]:
        """A transaction to note something in: the one that is open, or one of its own."""
        connection = self._store.writer.connection
        if connection.in_transaction:
            yield connection
        else:
            with self._store.writing():
                yield connection

    # What others know.

    def is_behind(self, connection: sqlite3.Connection, greeting: Greeting) -> bool:
        """Whether another has read what is not here: the store went back in time."""
        own, told = self._store.incarnation, serving.Cursor(greeting.read.version, greeting.read.tag)
        is_meant = greeting.to == bytes.fromhex(own) and own not in self._born
        return is_meant and serving.is_foreign(connection, told)

    def is_overtaken(self, connection: sqlite3.Connection, stream: str, seen: Mapping[int, int]) -> bool:
        """Whether somebody has seen more of what this store wrote to a stream than it knows of."""
        own = self._store.ledger
        own.load(connection)
        if self._store.incarnation not in self._born and seen.get(own.site, 0) > own.written(stream):
            return True
        mine = ledger.vector(connection, own.partition(connection, stream).number)
        return any(
            stream in opened and seen.get(site, 0) > mine.get(site, 0) > opened[stream]
            for site, opened in self._former.items()
        )

    def rewound(self, connection: sqlite3.Connection, streams: Collection[str]) -> None:
        """Go on as another incarnation, known by what others have seen of these streams.

        Other streams stay as they are, until somebody knows more of them, too.
        """
        store, partitions, hollow = self._store, self._store.ledger, self._store.engine.hollow
        streams = streams if self._closing is None else self._closing.as_one(streams)
        written = {name: stored for name, stored in store.engine.shares.items() if name not in hollow}
        if store.incarnation not in self._born:
            opened = identity.opened_at(connection)
            numbers = {name: partitions.partition(connection, name).number for name in written}
            unsure = sum(max(self._began.get(one, 0) - since, 0) for one, since in opened.items())
            if unsure:
                _LOG.warning("up to %d rows of %s may be known to others twice", unsure, store.path)
            old = self._renew(connection, is_gone=True)
            self._former[old] = {name: opened.get(number, 0) for name, number in numbers.items()}
        for old, since in self._former.items():
            again = [written[name] for name in written if name in streams and name in since]
            before = {
                partitions.partition(connection, one.stream).number: since.pop(one.stream) for one in again
            }
            identity.rewrite(connection, self._writing.commit, again, old, before)
        partitions.forget()
        partitions.load(connection)
        if self._closing is not None:
            self._closing.rewound()
        _LOG.warning("%s went back in time: it goes on as %s", store.path, store.incarnation)

    def go_back(self, may_take: Callable[[str], bool]) -> None:
        """Go on as another in a commit of its own, for a peer that has read what is not here."""
        with self.committing() as connection:
            self.rewound(connection, list(filter(may_take, self._store.engine.shares)))
