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
        self._former: dict[int, dict[int, int]] = {}
        """Sites that this store was when it turned out to have gone back → last numbers, by partition."""
        self._again: set[tuple[int, int]] = set()
        """Such a site, and a partition of which its rows were written again."""
        self._look()
        with store.exclusive():
            self._began = ledger.own_numbers(store.writer.connection)

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
                    identity.note_opening(connection)
        if is_another:
            with self.committing() as connection:
                lineage.mark(connection)
                self.renew(connection, is_gone=strange is not Strange.COPIED)

    def renew(self, connection: sqlite3.Connection, *, is_gone: bool) -> int:
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

    def is_overtaken(
        self,
        connection: sqlite3.Connection,
        stream: str,
        partition: ledger.Partition,
        seen: Mapping[int, int],
    ) -> bool:
        """Whether somebody has seen more of what this store wrote to a partition than it knows of.

        It is named in the stream in which the store's own rows of it are written.
        """
        own = self._store.ledger
        written = own.find(connection, stream, partition.value)
        known = 0 if written is None else written.seen
        if self._store.incarnation not in self._born and seen.get(own.site_in(partition), 0) > known:
            return True
        if not self._former or written is None:
            return False
        mine = ledger.vector(connection, written.number)
        for former, opened in self._former.items():
            site = ledger.site_within(connection, former, written)
            if site is None or (former, written.number) in self._again:
                continue
            if seen.get(site, 0) > mine.get(site, 0) > opened.get(written.number, 0):
                return True
        return False

    def rewound(self, connection: sqlite3.Connection, places: Collection[ledger.Key]) -> None:
        """Go on as another incarnation, known by what others have seen of these partitions.

        Others stay as they are, until somebody knows more of them, too.
        """
        store, partitions, hollow = self._store, self._store.ledger, self._store.engine.hollow
        if self._closing is not None:
            places = {*places, *((name, "") for name in self._closing.as_one(name for name, _ in places))}
        if store.incarnation not in self._born:
            opened = identity.opened_at(connection)
            unsure = sum(max(seen - opened.get(one, 0), 0) for one, seen in self._began.items())
            if unsure:
                _LOG.warning("up to %d rows of %s may be known to others twice", unsure, store.path)
            old = self.renew(connection, is_gone=True)
            self._former[old] = opened
        shares = {name: stored for name, stored in store.engine.shares.items() if name not in hollow}
        for old, opened in self._former.items():
            for name, value in places:
                partition = partitions.partition(connection, name, value)
                site = ledger.site_within(connection, old, partition)
                if name in shares and site is not None and (old, partition.number) not in self._again:
                    self._again.add((old, partition.number))
                    since = opened.get(partition.number, 0)
                    commit = self._writing.commit
                    identity.rewrite(connection, commit, shares[name], partition, site, since)
                    delta, collect = shares[name].delta, self._writing.collect
                    store.engine.propagate(connection, (delta,), collect, shrinks=True)
        partitions.forget()
        partitions.load(connection)
        if self._closing is not None:
            self._closing.rewound()
        _LOG.warning("%s went back in time: it goes on as %s", store.path, store.incarnation)

    def go_back(self, may_take: Callable[[str, str], bool]) -> None:
        """Go on as another in a commit of its own, for a peer that has read what is not here."""
        with self.committing() as connection:
            places = connection.execute(f"SELECT stream, value FROM {ledger.PARTITIONS}").fetchall()
            shares = self._store.engine.shares
            self.rewound(connection, [one for one in places if one[0] in shares and may_take(*one)])
