"""Writing: transactions, and what INSERT, UPDATE and DELETE do to each kind of relation."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from everview.engines.sqlite.change_log import ChangeLog, Log, check_reader
from everview.engines.sqlite.changes import Changes
from everview.engines.sqlite.circuits.circuit import Changed
from everview.engines.sqlite.circuits.names import column
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.tombstones import Tombstones
from everview.engines.sqlite.scalars.storage import storing
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.tallies import Tallies
from everview.engines.sqlite.tasks import current_task
from everview.engines.sqlite.watches import Callback, Watch, Watches
from everview.errors import DataError, StoreError
from everview.language.order import row_order_key
from everview.language.relations import Relation, Semantics
from everview.language.sizes import check_sizes

Row = tuple[Any, ...]


class Door(Protocol):
    """Who decides which events of a windowed relation go in."""

    def admit(self, relation: Relation, rows: Sequence[Row], operation: str) -> Sequence[Row]:
        """Put aside what is too late; return the rest."""

    def advance(self, relation: Relation, rows: Sequence[Row]) -> None:
        """Note what went in."""


class Writing:
    """Writes to a store, one transaction at a time, and tells the watches when it is committed."""

    def __init__(self, store: Store) -> None:
        self.store = self._store = store
        self._changes = Changes(store.engine)
        self._watches = Watches(self._unwatched)
        self.tallies = Tallies(store.engine)
        """What commits do to operators that somebody looks at."""
        self.log = Log(self._changes)
        """What is consumed in order."""
        self._looks = -1
        self._owner: tuple[int, object | None] | None = None
        self._committed = threading.Condition()
        self.commit = Commit(0, store.ledger)
        """The commit that is under way."""
        self.door: Door | None = None
        self._tombstones = Tombstones(store.engine.relations.values())
        relations = store.program.relations.items()
        self._storing = {name: storing([f.type for f in relation.schema]) for name, relation in relations}

    @property
    def inside(self) -> bool:
        """Whether this thread, and in it this task, has a transaction open."""
        return self._owner is not None and self._owner == (threading.get_ident(), current_task())

    def watch(self, name: str, callback: Callback) -> Watch:
        """Tell `callback` of the changes of a relation or view, from the next commit on."""
        if self.inside:
            raise StoreError("a watch begins between commits; call watch() outside the transaction")
        with self._store.exclusive():
            self._changes.follow(name)
            return self._watches.add(name, callback)

    @contextmanager
    def transaction(self, *, follows: bool = False) -> Iterator[None]:
        """All or nothing; afterwards the watches are told.

        A transaction that `follows` from what others say forgets no tombstones: these would be news again.
        """
        if self.inside:
            raise StoreError("a transaction is open in this thread already; they do not nest")
        with self._store.writing() as connection:
            self._owner = threading.get_ident(), current_task()
            try:
                self.commit = self._store.begin_commit(connection)
                if self._looks != self._store.looks:
                    self._looks = self._store.looks
                    self.log.reload(connection)
                yield
                self._store.engine.publish_changes(connection, self.commit)
                if not follows:
                    self._tombstones.tend(connection, self.commit)
                if not self.commit.grown:
                    self._store.withdraw(connection)
                if self.log.names:
                    with self._store.explained("written to"):
                        self.log.append(connection)
                with self._store.explained("read"):
                    changes = self._changes.take()
                if self.tallies.following:
                    self.tallies.take(self.commit.version)
                watches = self._watches.current()
            finally:
                self._changes.forget()
                if self.tallies.following:
                    self.tallies.forget()
                self._owner = None
        with self._committed:
            self._committed.notify_all()
        self._watches.tell(watches, changes)

    def subscribe(self, name: str, reader: str, *, snapshot: bool) -> ChangeLog:
        """Log the changes of a relation or view for a reader, from the next commit on."""
        if self.inside:
            raise StoreError("a log begins between commits; subscribe outside the transaction")
        with self.transaction():
            rows = self._store.engine.rows_sql(name) if snapshot else None
            added = self.log.subscribe(self._store.writer.connection, name, check_reader(reader), rows)
            # It takes a number, so that another process with this store looks again before it commits.
            self.commit.grown |= added
        return ChangeLog(name, reader, self)

    def unsubscribed(self, name: str) -> None:
        """Take no more notice of a relation or view that nobody reads in order, unless it is watched."""
        if all(watch.name != name for watch in self._watches.current()):
            self._unwatched(name)

    def _unwatched(self, name: str) -> None:
        if name not in self.log.names:
            self._changes.unfollow(name)

    def collect(self, connection: sqlite3.Connection, deltas: Changed) -> None:
        """Note what a statement has changed, for the watches and whoever looks at operators."""
        self._changes.collect(connection, deltas)
        if self.tallies.following:
            with self._store.uncounted():
                self.tallies.collect(connection, deltas)

    def wait(self, seconds: float) -> None:
        """Wait until something is committed here, but not longer."""
        with self._committed:
            self._committed.wait(seconds)

    def run(self, write: Callable[[], int]) -> int:
        """Run one write: within the open transaction, where it fails alone, or in one of its own."""
        if not self.inside:
            with self.transaction(), self._store.explained("written to"):
                return write()
        try:
            with self._store.statement():
                count = write()
        except BaseException:
            self._changes.drop()
            self.tallies.drop()
            raise
        self._changes.keep()
        if self.tallies.following:
            self.tallies.keep()
        return count

    def insert(self, relation: Relation, rows: Sequence[Row]) -> int:
        """Insert checked rows; return how many appeared."""
        check_sizes(relation, rows)
        self._check_owner(relation, rows)
        door = self._door(relation)
        if door is not None:
            rows = door.admit(relation, rows, "insert")
        count = self._apply(relation, rows, self._store.engine.insert) if rows else 0
        if door is not None:
            door.advance(relation, rows)
        return count

    def delete(self, relation: Relation, rows: Sequence[Row]) -> int:
        """Delete checked rows, of a keyed relation by their keys; return how many disappeared."""
        if relation.is_keyed:
            rows = _only_keys(relation, rows)
        else:
            self._check_owner(relation, rows)
        door = self._door(relation)
        if door is not None:
            rows = door.admit(relation, rows, "delete")
        return self._apply(relation, rows, self._store.engine.delete) if rows else 0

    def update(self, relation: Relation, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Replace rows all at once; a row that is both taken away and put back stays as it is.

        On a keyed relation new rows take the places of their keys. Where two of them meet in one key, the
        greater of the old rows, in the order of `rows()`, is the last writer.
        """
        self._check_owner(relation, old)
        if self._door(relation) is not None:
            raise DataError(
                f"{relation.name} holds events, which are not updated; delete the row and insert another, "
                "while its window is open",
                relation=relation.name,
            )
        if relation.is_keyed:
            key = _key(relation)
            places = set(map(key, new))
            if len(places) < len(new):
                pairs = sorted(zip(old, new, strict=True), key=lambda pair: row_order_key(pair[0]))
                new = [row for _, row in pairs]
            gone = [row for row in old if key(row) not in places]
            come: Sequence[Row] = new
        elif relation.semantics is Semantics.BAG:
            gone = list((Counter(old) - Counter(new)).elements())
            come = list((Counter(new) - Counter(old)).elements())
        else:
            gone = [row for row in dict.fromkeys(old) if row not in set(new)]
            come = [row for row in dict.fromkeys(new) if row not in set(old)]
        self.delete(relation, gone)
        self.insert(relation, come)

    def _door(self, relation: Relation) -> Door | None:
        return self.door if relation.event_time is not None else None

    def _apply(self, relation: Relation, rows: Sequence[Row], verb: Callable[..., int]) -> int:
        stored = self._storing[relation.name](rows)

        def changed(connection: sqlite3.Connection, deltas: Changed) -> None:
            self.check_replaced(relation, connection)
            self.collect(connection, deltas)

        return verb(self._store.writer.connection, relation.name, stored, self.commit, changed)

    def _check_owner(self, relation: Relation, rows: Sequence[Row]) -> None:
        if relation.owner is None:
            return
        position = relation.columns.index(relation.owner)
        for row in rows:
            if row[position] != self._store.name:
                raise self._not_ours(relation, relation.owner, row[position])

    def check_replaced(self, relation: Relation, connection: sqlite3.Connection) -> None:
        """A key's row may be somebody else's, and then it is neither replaced nor deleted."""
        if relation.owner is None or not relation.is_keyed:
            return
        owner = column(relation.columns.index(relation.owner))
        delta = self._store.engine.relations[relation.name].delta
        found = connection.execute(
            f"SELECT {owner} FROM {delta} WHERE {owner} IS NOT ? LIMIT 1", (self._store.name,)
        ).fetchone()
        if found is not None:
            raise self._not_ours(relation, relation.owner, found[0])

    def _not_ours(self, relation: Relation, owner: str, value: Any) -> DataError:
        return DataError(
            f"{relation.name}.{owner} is {value!r}, and only that site writes such rows; "
            f"this one is {self._store.name!r}",
            relation=relation.name,
            column=owner,
            value=value,
            expected=self._store.name,
        )


def _key(relation: Relation) -> Callable[[Row], Row]:
    """Return what takes the key out of a row."""
    positions = relation.key_positions
    return lambda row: tuple(row[position] for position in positions)


def _only_keys(relation: Relation, rows: Sequence[Row]) -> list[Row]:
    """Rows with nothing but their keys."""
    positions = relation.key_positions
    is_key = [position in positions for position in range(len(relation.schema))]
    return [tuple(cell if own else None for cell, own in zip(row, is_key, strict=True)) for row in rows]
