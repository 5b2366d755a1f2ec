"""A site: a device's relations and views in one SQLite file, always readable, always writable."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from everview.engines.sqlite.changes import Changes
from everview.engines.sqlite.explain import explain
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.storage import storing
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.witnesses import Provenance, Witnesses
from everview.errors import DataError, StoreError
from everview.language.program import Program
from everview.language.relations import Relation, Semantics
from everview.language.statements import Delete, Insert, Query, Statement, Update, arguments
from everview.language.values import check_rows

__all__ = ["Change", "Provenance", "Site", "Watch"]

Rows = Iterable[Mapping[str, Any] | Sequence[Any]]
Parameters = Mapping[str, Any] | Sequence[Any] | None
Change = tuple[tuple[Any, ...], int]
Callback = Callable[[list[Change]], object]


@dataclass(slots=True)
class Watch:
    """A subscription to the changes of a relation or view."""

    name: str
    callback: Callback
    _cancel: Callable[[Watch], None] = field(repr=False)

    def cancel(self) -> None:
        """Stop it; doing so twice is harmless."""
        self._cancel(self)


class Site:
    """Relations that are written, and views that are always fresh. Open one with `Site.open`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading = Reading(store)
        self._bound: dict[str, Statement] = {}
        self._owner: int | None = None
        self._version = 0
        self._watches: list[Watch] = []
        self._changes = Changes(store.engine)
        self._storing = {
            name: storing([f.type for f in relation.schema])
            for name, relation in self.program.relations.items()
        }

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        program: Program | None = None,
        *,
        name: str = "",
    ) -> Self:
        """Open a store, or create it; ":memory:" keeps it in memory.

        A new store needs a program. An existing one must have been made for the same program, which need
        not be given again.
        """
        return cls(Store(os.fspath(path), program, name))

    @property
    def program(self) -> Program:
        """What this site runs."""
        return self._store.program

    @property
    def name(self) -> str:
        """The site's label."""
        return self._store.name

    # Writing

    def insert(self, relation: str, rows: Rows) -> int:
        """Insert rows, mappings or sequences in column order; return how many appeared.

        On a keyed relation a row replaces the one of its key.
        """
        target = self._relation(relation)
        checked = check_rows(relation, target.schema, rows)
        self._check_owner(target, checked)
        return self._write(lambda: self._apply_insert(target, checked)) if checked else 0

    def delete(self, relation: str, rows: Rows) -> int:
        """Delete rows; return how many disappeared.

        A keyed relation takes keys or rows, matched by key; a bag loses one copy for each row given.
        """
        target = self._relation(relation)
        checked = self._to_delete(target, rows)
        self._check_owner(target, checked)
        return self._write(lambda: self._apply_delete(target, checked)) if checked else 0

    def execute(self, sql: str, params: Parameters = None) -> int:
        """Run an INSERT, UPDATE or DELETE with parameters `?` or `:name`; return the rows affected."""
        statement = self._bind(sql)
        if isinstance(statement, Query):
            raise DataError("execute() takes INSERT, UPDATE or DELETE; a SELECT goes to query()")
        given = arguments(statement.parameters, params)
        target = self._relation(statement.relation)

        def run() -> int:
            rows = self._reading.rows_of(statement.plan, given, inside=True)
            match statement:
                case Insert():
                    checked = check_rows(target.name, target.schema, rows)
                    self._check_owner(target, checked)
                    self._apply_insert(target, checked)
                case Delete():
                    self._check_owner(target, rows)
                    self._apply_delete(target, rows)
                case Update():
                    width = len(target.schema)
                    old = [row[:width] for row in rows]
                    new = check_rows(target.name, target.schema, [row[width:] for row in rows])
                    self._check_owner(target, [*old, *new])
                    self._apply_update(target, old, new)
            return len(rows)

        return self._write(run)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """All writes inside take effect together, or none: an exception undoes them."""
        if self._inside:
            raise StoreError("a transaction is open in this thread already; they do not nest")
        with self._transaction():
            yield self

    # Reading

    def query(self, sql: str, params: Parameters = None) -> list[dict[str, Any]]:
        """Run a SELECT over relations and views; return its rows as dicts, in its order."""
        statement = self._bind(sql)
        if not isinstance(statement, Query):
            raise DataError("query() takes a SELECT; writes go to execute()")
        given = arguments(statement.parameters, params)
        names = [column.name for column in statement.plan.schema]
        rows = self._reading.rows_of(statement.plan, given, inside=self._inside)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return all rows of a relation or view, duplicates repeated, sorted column by column."""
        self.program.schema(name)
        return self._reading.sorted_rows(name, inside=self._inside)

    def why(self, name: str, row: Mapping[str, Any] | Sequence[Any]) -> Provenance:
        """Say which rows of relations a row of a view, or of a relation, is there for."""
        schema = self.program.schema(name)
        (checked,) = check_rows(name, [replace(f, nullable=True) for f in schema], [row])
        return Witnesses(self._reading, inside=self._inside).why(name, checked)

    def explain(self, name: str) -> str:
        """Say how a view is kept, and why so."""
        self.program.schema(name)
        with self._store.reading(inside=self._inside) as handle:
            return explain(self._store.engine, name, handle.connection)

    def watch(self, name: str, callback: Callback) -> Watch:
        """Call `callback([(row, weight), …])` after each commit that changes a relation or view.

        Weights are net and not 0. It is called in the committing thread, and not at first.
        """
        self.program.schema(name)
        watch = Watch(name, callback, self._unwatch)
        self._changes.follow(name)
        self._watches.append(watch)
        return watch

    def status(self) -> dict[str, Any]:
        """Return what there is to know about the store: its name, size, commits, and failed expressions."""
        return self._reading.status(inside=self._inside)

    # Life

    def close(self) -> None:
        """Close the store; nothing needs saving."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Inside

    @property
    def _inside(self) -> bool:
        """Whether this thread has a transaction open."""
        return self._owner == threading.get_ident()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._store.writing() as connection:
            self._owner = threading.get_ident()
            try:
                self._version = self._store.next_version(connection)
                yield
            except BaseException:
                self._changes.forget()
                raise
            finally:
                self._owner = None
            changes = self._changes.take()
        for watch in list(self._watches):
            if changes.get(watch.name):
                watch.callback(changes[watch.name])

    def _write(self, run: Callable[[], int]) -> int:
        if self._inside:
            return run()
        with self._transaction():
            return run()

    def _apply_insert(self, relation: Relation, rows: list[tuple[Any, ...]]) -> int:
        return self._apply(relation, rows, self._store.engine.insert)

    def _apply_delete(self, relation: Relation, rows: list[tuple[Any, ...]]) -> int:
        return self._apply(relation, rows, self._store.engine.delete)

    def _apply(self, relation: Relation, rows: list[tuple[Any, ...]], verb: Callable[..., int]) -> int:
        stored = self._storing[relation.name](rows)
        connection = self._store.writer.connection
        return verb(connection, relation.name, stored, self._version, self._changes.collect)

    def _apply_update(
        self, relation: Relation, old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]
    ) -> None:
        if relation.semantics is Semantics.KEYED:
            kept = {_key(relation, row) for row in new}
            old = [row for row in old if _key(relation, row) not in kept]
        if old:
            self._apply_delete(relation, old)
        if new:
            self._apply_insert(relation, new)

    def _to_delete(self, relation: Relation, rows: Rows) -> list[tuple[Any, ...]]:
        if relation.semantics is not Semantics.KEYED:
            return check_rows(relation.name, relation.schema, rows)
        return _keys_or_rows(relation, rows)

    def _relation(self, name: str) -> Relation:
        found = self.program.relations.get(name)
        if found is None:
            kind = "a view, which is not written to" if name in self.program.views else "not in the program"
            raise DataError(f"{name} is {kind}", relation=name)
        return found

    def _check_owner(self, relation: Relation, rows: Sequence[tuple[Any, ...]]) -> None:
        if relation.owner is None:
            return
        position = relation.columns.index(relation.owner)
        for row in rows:
            if row[position] != self.name:
                raise DataError(
                    f"{relation.name}.{relation.owner} is {row[position]!r}, and only that site writes "
                    f"such rows; this one is {self.name!r}",
                    relation=relation.name,
                    column=relation.owner,
                    value=row[position],
                    expected=self.name,
                )

    def _bind(self, sql: str) -> Statement:
        if sql not in self._bound:
            self._bound[sql] = self.program.bind(sql)
        return self._bound[sql]

    def _unwatch(self, watch: Watch) -> None:
        if watch in self._watches:
            self._watches.remove(watch)
        if all(other.name != watch.name for other in self._watches):
            self._changes.unfollow(watch.name)

    def __repr__(self) -> str:
        return f"<Site {self.name!r} at {self._store.path}>"


def _key(relation: Relation, row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(row[position] for position in relation.key_positions)


def _keys_or_rows(relation: Relation, rows: Rows) -> list[tuple[Any, ...]]:
    """Return rows in which only the key counts: what was given may be keys or whole rows."""
    keys = [relation.schema[position] for position in relation.key_positions]
    found = []
    for row in rows:
        if isinstance(row, Mapping):
            given = {name: value for name, value in row.items() if name in relation.key}
            check_rows(relation.name, [replace(f, nullable=True) for f in relation.schema], [row])
        elif isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
            raise DataError(
                f"{row!r} is no key and no row of {relation.name}", relation=relation.name, value=row
            )
        else:
            whole = len(row) == len(relation.schema) and len(row) != len(keys)
            values = [row[position] for position in relation.key_positions] if whole else list(row)
            given = dict(zip(relation.key, values, strict=False)) if len(values) == len(keys) else {}
            if len(given) != len(keys):
                raise DataError(
                    f"{relation.name} is deleted from by key ({', '.join(relation.key)}) or by whole rows, "
                    f"and {row!r} is neither",
                    relation=relation.name,
                    value=row,
                )
        (key,) = check_rows(relation.name, keys, [given])
        by_name = dict(zip(relation.key, key, strict=True))
        found.append(tuple(by_name.get(name) for name in relation.columns))
    return found
