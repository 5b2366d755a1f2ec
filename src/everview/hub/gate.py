"""The gate: an ordinary replica, in an SQLite file of the hub's folder, by which a hub talks with sites.

It hosts the program's relations; sites that host only views are fed from these. Of views it has only those
that an authority publishes: what the hub itself publishes is put in after each refresh (see `announcing`),
the rest it takes and passes on like any site. What sites push is in the gate when their sync returns, the
hub's own writes are put into it by the refresh that takes them in, and what has changed in it since the last
refresh is what the next one merges. A hub that never talks with sites has none.

Beside its relations it has the greatest number of the hub's own writes in it, the epoch of the hub that may
write into it, and what it has told: a word for each export that a record may name, with the commit up to
which that went. A record whose word it does not know was made with another gate, or with a later state of
this one.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from everview.engines.sqlite.circuits.circuit import Changed
from everview.engines.sqlite.connections import Handle
from everview.engines.sqlite.engine import OnChange
from everview.engines.sqlite.names import HUB, STORE
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.scalars.storage import store_rows
from everview.engines.sqlite.stamps import SHIFT
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.windows.closing import checked_moment
from everview.engines.sqlite.writing import Writing
from everview.errors import DataError, StoreError
from everview.hub.changed import gone_table, noting_ddl
from everview.hub.generations import Shipping
from everview.language.program import Program
from everview.language.relations import Relation, View
from everview.planner.published import published_stream
from everview.replication.protocol.replica import Replica

__all__ = ["Announced", "Columns", "Gate"]

Columns = Sequence[Sequence[Any]]
"""Stored values, column by column."""

_PAGE_CELLS = 250_000
"""About so many cells are in a page: a hub answers many devices at once."""

_TOLD = f"{HUB}_told"
_ANNOUNCED = f"{HUB}_announced"

_DDL = (
    (
        f"CREATE TABLE IF NOT EXISTS {HUB} (one INTEGER PRIMARY KEY CHECK (one = 1), "
        "epoch INTEGER NOT NULL, arrived INTEGER NOT NULL, told INTEGER NOT NULL)"
    ),
    f"INSERT OR IGNORE INTO {HUB} VALUES (1, 0, 0, 0)",
    f"CREATE TABLE IF NOT EXISTS {_TOLD} (word TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID",
    (
        f"CREATE TABLE IF NOT EXISTS {_ANNOUNCED} (view TEXT PRIMARY KEY, refresh INTEGER NOT NULL, "
        "name TEXT NOT NULL) WITHOUT ROWID"
    ),
)


class Announced(NamedTuple):
    """The refresh of which a view is in the gate, and what its contents were called."""

    refresh: int
    name: str


Announcement = tuple[str, Iterable[tuple[Columns, Sequence[int]]], bool, Announced]
"""A view, rows and their weights, whether they are all of it, and what they are called."""


class _FencedStore(Store):
    """A store into which only the hub of the last epoch writes, whatever is written and on whose behalf."""

    def __init__(self, path: str, program: Program, name: str) -> None:
        self.epoch = 0
        self._shipping: Shipping | None = None
        self._unshipped = False
        self._waiting = threading.RLock()
        published = [view.name for view in program.views.values() if view.authority is not None]
        super().__init__(path, program, name, hosts=[*program.relations, *published], computes=False)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads from writing; they wait as long as it takes, for a write here may be large."""
        with self._waiting, super().exclusive():
            self._ship()
            yield

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; StoreError when a later hub has this store."""
        with super().writing() as connection:
            if self.epoch:
                (epoch,) = connection.execute(f"SELECT epoch FROM {HUB}").fetchone()
                if epoch != self.epoch:
                    raise StoreError(
                        f"another hub has taken {self.path} over: close this one and open it again",
                        path=self.path,
                    )
            yield connection
            self._unshipped = self._shipping is not None
        self._ship()

    @contextmanager
    def reading(self, *, inside: bool) -> Iterator[Handle]:
        """What is read is in the store that the gate is kept in."""
        if self._unshipped and not inside:
            with self.exclusive():
                pass
        with super().reading(inside=inside) as handle:
            yield handle

    def keep(self, shipping: Shipping) -> None:
        """Have every commit shipped, from now on."""
        with self.exclusive():
            self.writer.connection.execute("PRAGMA wal_autocheckpoint = 0")
            if not self._begin(shipping):
                raise StoreError(f"{self.path} is being read by another process: try again", path=self.path)
            self._shipping = shipping

    def _begin(self, shipping: Shipping) -> bool:
        """A new generation, if nobody reads; SQLite starts its log over."""
        whole, shipping.is_whole = shipping.is_whole, False
        busy, _, _ = self.writer.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            shipping.is_whole = whole
        else:
            shipping.begin(self._head())
        return shipping.is_whole

    def _head(self) -> int:
        return int(self.writer.connection.execute(f"SELECT version FROM {STORE}").fetchone()[0])

    def _ship(self) -> None:
        """Bring what is committed to where it lasts; until that succeeds, nothing else is done."""
        if self._unshipped and self._shipping is not None and not self.writer.connection.in_transaction:
            shipping = self._shipping
            if shipping.is_whole:
                shipping.ship(self._head())
            if (not shipping.is_whole or shipping.is_long()) and not self._begin(shipping):
                raise StoreError(f"{self.path} is being read all the time: try again", path=self.path)
            self._unshipped = False

    def close(self) -> None:
        """Close it; what could not be shipped is in the file, and was not acknowledged."""
        if not self.closed:
            with suppress(StoreError), self.exclusive():
                pass
            self._shipping, self._unshipped = None, False
        super().close()

    def claim(self, epoch: int) -> None:
        """Keep the hubs of earlier epochs out, from now on."""
        with super().writing() as connection:
            connection.execute(f"UPDATE {HUB} SET epoch = max(epoch, ?)", (epoch,))
        self.epoch = epoch


class Gate:
    """A replica of the program's relations that belongs to the hub of an epoch."""

    def __init__(self, path: str, program: Program, name: str, epoch: int) -> None:
        self._store = _FencedStore(path, program, name)
        try:
            with self._store.writing() as connection:
                for statement in _DDL:
                    connection.execute(statement)
                for stored in self.relations.values():
                    for statement in noting_ddl(stored):
                        connection.execute(statement)
            self._store.claim(epoch)
            self._writing = Writing(self._store)
            self.replica = Replica(self._store, self._writing, page_cells=_PAGE_CELLS)
        except BaseException:
            self._store.close()
            raise

    def keep(self, shipping: Shipping) -> None:
        """Have every commit in a store before anybody is told of it, from now on."""
        self._store.keep(shipping)

    @property
    def path(self) -> str:
        """Its file."""
        return self._store.path

    @property
    def relations(self) -> dict[str, StoredRows]:
        """The relations as they lie in it."""
        return self._store.engine.relations

    @property
    def arrived(self) -> int:
        """The greatest number of the hub's own writes that are in it."""
        return self._number(f"SELECT arrived FROM {HUB}")

    def _number(self, sql: str) -> int:
        with self._store.reading(inside=False) as handle:
            return int(handle.connection.execute(sql).fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # Writing.

    def put(self, number: int, relation: Relation, writes: Sequence[tuple[bool, Iterator[Columns]]]) -> bool:
        """Put one of the hub's own writes in, all of it and once; whether anything grew.

        It may be of several, one after the other, each of which says whether its rows are to be present.

        DataError, and nothing was put in, when it would replace or delete another site's row.
        """
        if number <= self.arrived:
            return False
        with self._writing.transaction():
            for present, chunks in writes:
                for columns in chunks:
                    self._write(relation, columns, present=present)
            self._store.writer.connection.execute(f"UPDATE {HUB} SET arrived = ?", (number,))
            return self._writing.commit.grown

    def write(self, relation: Relation, rows: Sequence[tuple[Any, ...]], *, present: bool) -> int:
        """Let events of the hub's own in, or aside, as a site does; how many went in."""
        verb = self._writing.insert if present else self._writing.delete
        return self._writing.run(lambda: verb(relation, rows)) if rows else 0

    def close_windows(self, until: dt.datetime, relations: Iterable[str] | None) -> int:
        """Close windows as a source; of how many relations that was news."""
        moment, names = checked_moment(until), None if relations is None else list(relations)
        closing = self.replica.closing
        if closing is None:
            raise DataError("the program has no windowed relation, so there is nothing to close")
        return self._writing.run(lambda: closing.close(moment, names))

    def fill(self, relation: Relation, columns: Columns, made_us: int) -> None:
        """Put rows in that the hub had at a time before there was this gate."""
        with self._writing.transaction():
            commit = self._writing.commit
            commit.stamp = min(commit.stamp, made_us << SHIFT)
            self._write(relation, columns, present=True)

    def _write(self, relation: Relation, columns: Columns, *, present: bool) -> None:
        """As a site writes, but for what the hub has checked at its own door."""
        if relation.is_keyed and not present:
            key, nothing = relation.key_positions, [None] * len(columns[0])
            columns = [column if place in key else nothing for place, column in enumerate(columns)]
        rows = list(zip(*columns, strict=True))
        if rows:
            engine = self._store.engine
            verb = engine.insert if present else engine.delete
            verb(
                self._store.writer.connection,
                relation.name,
                rows,
                self._writing.commit,
                self._guard(relation),
            )

    def _guard(self, relation: Relation) -> OnChange:
        def changed(connection: sqlite3.Connection, deltas: Changed) -> None:
            self._writing.check_replaced(relation, connection)
            self._writing.collect(connection, deltas)

        return changed

    # Views that the hub publishes.

    @property
    def announces(self) -> list[View]:
        """The views whose authority is the hub."""
        published = self._store.engine.published.values()
        return [one.view for one in published if one.view.authority == self._store.name]

    def announced(self, view: str) -> Announced | None:
        """The refresh of which a view is in it; None when it has none of this hub."""
        with self._store.reading(inside=False) as handle:
            if not self._is_own(handle.connection, published_stream(view)):
                return None
            found = handle.connection.execute(
                f"SELECT refresh, name FROM {_ANNOUNCED} WHERE view = ?", (view,)
            ).fetchone()
        return None if found is None else Announced(*found)

    def _is_own(self, connection: sqlite3.Connection, stream: str) -> bool:
        return self._store.engine.authors[stream].is_own(connection, self._store.ledger.site)

    def announce(self, views: Iterable[Announcement]) -> None:
        """Put changes of views in, all at once: rows with weights, or the whole of a view."""
        with self._writing.transaction(), self._store.explained("written to"):
            connection, commit = self._store.writer.connection, self._writing.commit
            for view, chunks, whole, announced in views:
                commit.grown |= self._put_view(connection, published_stream(view), chunks, whole=whole)
                connection.execute(
                    f"INSERT OR REPLACE INTO {_ANNOUNCED} VALUES (?, ?, ?)", (view, *announced)
                )

    def _put_view(
        self,
        connection: sqlite3.Connection,
        stream: str,
        chunks: Iterable[tuple[Columns, Sequence[int]]],
        *,
        whole: bool,
    ) -> bool:
        """Whether anything changed; a first time is always news."""
        engine, now_us = self._store.engine, self._store.environment.now_us()
        author = engine.authors[stream]
        author.void(connection)
        for columns, weights in chunks:
            author.stage(connection, [*columns, weights])
        return engine.put_owned(connection, stream, self._writing.commit, now_us, whole=whole)

    def meet(self) -> None:
        """Make what telling others takes, before the first of them waits for it."""
        with self.replica.telling():
            pass

    def renew(self) -> None:
        """Go on as another incarnation, whose numbers nobody knows by other rows."""
        self.replica.go_back()

    def start(self, arrived: int) -> str:
        """Begin with what was put in, the hub's own writes up to a number among it; the word for that."""
        with self._store.writing() as connection:
            connection.execute(f"UPDATE {HUB} SET arrived = ?", (arrived,))
        with self.reading() as (_, head, _):
            pass
        return self.tell(head)

    def origin(self, name: str, row: Sequence[Any]) -> str:
        """The name of the site that wrote a row of a relation; empty when there is no such row."""
        relation = self.relations[name]
        (stored,) = store_rows([f.type for f in relation.relation.schema], [tuple(row)])
        with self._store.reading(inside=False) as handle:
            site = relation.writer(handle.connection, stored)
            if site == 0:
                return self._store.name
            found = handle.connection.execute(
                f"SELECT iif(name = '', incarnation, name) FROM {SITES} WHERE number = ?", (site,)
            ).fetchone()
        return "" if found is None else str(found[0])

    # Telling.

    @contextmanager
    def reading(self) -> Iterator[tuple[sqlite3.Connection, int, dict[str, int]]]:
        """One state to read from, its last commit, and for each relation how many have been noted as gone."""
        with self._store.snapshot(inside=False), self._store.reading(inside=False) as handle:
            connection = handle.connection
            (head,) = connection.execute(f"SELECT version FROM {STORE}").fetchone()
            noted = {
                name: connection.execute(f"SELECT ifnull(max(seq), 0) FROM {gone_table(stored)}").fetchone()[
                    0
                ]
                for name, stored in self.relations.items()
            }
            yield connection, head, noted

    def tell(self, head: int) -> str:
        """Remember that what there is up to a commit is told; the word that a record may have for it."""
        word = uuid.uuid4().hex
        with self._store.writing() as connection:
            connection.execute(f"INSERT INTO {_TOLD} VALUES (?, ?)", (word, head))
        return word

    def told(self, word: str) -> int | None:
        """The commit up to which a record of this word has everything; None when it is not this gate's."""
        with self._store.reading(inside=False) as handle:
            found = handle.connection.execute(
                f"SELECT version FROM {_TOLD} WHERE word = ?", (word,)
            ).fetchone()
        return None if found is None else int(found[0])

    def grown_since(self, since: int, most: int) -> tuple[int, int]:
        """How many commits there are after one, and how many rows they have grown, counted up to `most`."""
        with self._store.snapshot(inside=False), self._store.reading(inside=False) as handle:
            connection = handle.connection
            (head,) = connection.execute(f"SELECT version FROM {STORE}").fetchone()
            rows = 0
            for stored in self.relations.values():
                name = stored.table.name
                for limited, given in (
                    (f"SELECT 1 FROM {name} WHERE version > ? LIMIT ?", (since, most - rows)),
                    (f"SELECT 1 FROM {gone_table(stored)} LIMIT ?", (most - rows,)),
                ):
                    rows += connection.execute(f"SELECT count(*) FROM ({limited})", given).fetchone()[0]
        # What the hub publishes is a commit too: no refresh waits for that.
        return (head - since if rows else 0), rows

    def forget(self, word: str, noted: dict[str, int]) -> None:
        """A record with this word is made: what was noted up to then is no longer needed."""
        with self._store.writing() as connection:
            connection.execute(
                f"UPDATE {HUB} SET told = (SELECT version FROM {_TOLD} WHERE word = ?)", (word,)
            )
            connection.execute(f"DELETE FROM {_TOLD} WHERE word <> ?", (word,))
            for name, last in noted.items():
                gone = gone_table(self.relations[name])
                connection.execute(f"DELETE FROM {gone} WHERE seq <= ?", (last,))
