"""A site: a device's relations and views in one SQLite file, always readable, always writable."""

from __future__ import annotations

import datetime as dt
import functools
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from everview.engines.sqlite.backups import Backup, OnPages, back_up, put_back
from everview.engines.sqlite.change_log import ChangeLog, Logged
from everview.engines.sqlite.evolving import evolve_store, refuse_unsafe
from everview.engines.sqlite.explain import explain
from everview.engines.sqlite.inspecting import Inspection
from everview.engines.sqlite.partitions import read_choices
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.watches import Callback, Change, Watch
from everview.engines.sqlite.windows.closing import Closing, checked_moment
from everview.engines.sqlite.witnesses import Witnesses
from everview.engines.sqlite.writing import Writing
from everview.errors import DataError, ProgramError, StoreError
from everview.language.conflicts import CONFLICTS, conflicts_schema
from everview.language.correlation import scans_of
from everview.language.evolution import Evolution
from everview.language.keyed_rows import rows_by_key
from everview.language.plan import Schema
from everview.language.program import Program
from everview.language.relations import Relation
from everview.language.statements import Delete, Insert, Query, Statement, Update, arguments
from everview.language.values import check_rows
from everview.planner.why.answer import Provenance
from everview.replication.protocol.replica import Replica
from everview.replication.transports.base import Transport
from everview.replication.transports.memory import MemoryTransport
from everview.replication.transports.reach import Peer, sync_with
from everview.replication.transports.repairs import repair_with
from everview.replication.transports.report import OnProgress, Progress, SyncReport
from everview.tables import html
from everview.tables.table import Table

__all__ = [
    "Backup",
    "Change",
    "ChangeLog",
    "Logged",
    "Progress",
    "Provenance",
    "Site",
    "SyncReport",
    "Table",
    "Watch",
]

Rows = Iterable[Mapping[str, Any] | Sequence[Any]]
Hosts = Iterable[str] | Mapping[str, Any]
"""Names; or names with values of their partitions, as in `{"orders": {"region": ["eu"]}, "totals": ...}`."""

Parameters = Mapping[str, Any] | Sequence[Any] | None

KNOWN_STATEMENTS = 256
"""How many statements are remembered, bound, for when they are run again."""


class Site:
    """Relations that are written, and views that are always fresh. Open one with `Site.open`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading = Reading(store)
        self._writing = Writing(store)
        try:
            self._replica = Replica(store, self._writing)
        except BaseException:
            store.close()
            raise
        self._bind: Callable[[str], Statement] = functools.lru_cache(KNOWN_STATEMENTS)(self._bound)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        program: Program | None = None,
        *,
        name: str = "",
        hosts: Hosts | None = None,
    ) -> Self:
        """Open a store, or create it; ":memory:" keeps it in memory.

        A new store needs a program. An existing one must have been made for the same program, which need
        not be given again. `hosts` names the relations and views that the site has, all if it is left out; a
        view needs no inputs here, for other sites feed it. Naming more of them later adds those. As a mapping
        it says which values of partitioned relations: `{"orders": {"region": ["eu"]}, "totals": ...}`.
        """
        if not os.fspath(path):
            raise StoreError("an empty path names no file; ':memory:' keeps a store in memory", path="")
        return cls(Store(os.fsdecode(path), program, name, hosts=hosts))

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
        return self._writing.run(lambda: self._writing.insert(target, checked)) if checked else 0

    def delete(self, relation: str, rows: Rows) -> int:
        """Delete rows; return how many disappeared.

        A keyed relation takes keys or rows, matched by key; a bag loses one copy for each row given.
        """
        target = self._relation(relation)
        by_key = target.is_keyed
        checked = rows_by_key(target, rows) if by_key else check_rows(relation, target.schema, rows)
        return self._writing.run(lambda: self._writing.delete(target, checked)) if checked else 0

    def close_windows(self, until: dt.datetime, relations: Iterable[str] | None = None) -> int:
        """Say that this source has written all events before a moment; return of how many relations.

        Of the windowed relations that it is a source of, or of those given. What it writes into closed
        windows afterwards goes aside, into `everview_late_…`.
        """
        moment, names = checked_moment(until), None if relations is None else list(relations)
        closing = self._closing()
        return self._writing.run(lambda: closing.close(moment, names))

    def take_charge(self, *, alone: bool = False) -> bool:
        """Write as this site's source from here, after the store was restored or copied.

        Return whether it may: not before the sites that hold its events have heard of it, so sync and call it
        again. `alone` says that no other site has anything that the store has forgotten.
        """
        self._require_no_transaction()
        self._closing()
        return self._replica.take_charge(alone=alone)

    def give_up(self, store: str) -> str:
        """Say that another store is lost for good, by its name or incarnation; return its incarnation.

        It is enough to say it once, anywhere: others hear of it as they sync. Windows wait no longer for that
        store. Views without their inputs are read again where they show what only that store had. Should it
        come back all the same, nothing is lost. DataError where no such store is known, or several are.
        """
        self._require_no_transaction()
        return self._replica.give_up(store)

    def execute(self, sql: str, params: Parameters = None) -> int:
        """Run an INSERT, UPDATE or DELETE with parameters `?` or `:name`; return the rows affected.

        Those are the rows that INSERT made appear, that UPDATE found, and that DELETE made disappear.
        """
        statement = self._bind(sql)
        if isinstance(statement, Query):
            raise DataError("execute() takes INSERT, UPDATE or DELETE; a SELECT goes to query()")
        given = arguments(statement.parameters, params)
        target = self._relation(statement.relation)

        def run() -> int:
            rows = self._reading.rows_of(statement.plan, given, inside=True)
            match statement:
                case Insert():
                    return self._writing.insert(target, check_rows(target.name, target.schema, rows))
                case Delete():
                    return self._writing.delete(target, rows)
                case Update():
                    width = len(target.schema)
                    new = check_rows(target.name, target.schema, [row[width:] for row in rows])
                    self._writing.update(target, [row[:width] for row in rows], new)
                    return len(rows)

        return self._writing.run(run)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """All writes inside take effect together, or none: an exception undoes them.

        A write inside that fails is undone alone; whoever catches its error can go on.
        """
        with self._writing.transaction():
            yield self

    # Reading

    def query(self, sql: str, params: Parameters = None) -> list[dict[str, Any]]:
        """Run a SELECT over relations and views; return its rows as dicts, in its order."""
        schema, rows = self._asked(sql, params)
        names = [column.name for column in schema]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return all rows of a relation or view, duplicates repeated, sorted column by column."""
        self._hosted(name)
        return self._reading.sorted_rows(name, inside=self._inside)

    def table(self, what: str, params: Parameters = None) -> Table:
        """Return the rows of a relation or view, or of a SELECT, with their columns, for a notebook to show.

        `table("alerts").pandas()` and `.arrow()` hand them on with their types. It is what there was at one
        moment; ask again for what there is now.
        """
        if params is None and what in self._store.engine.hosted():
            return Table(self._hosted(what), self.rows(what), what)
        if params is None and what.isidentifier():
            self._hosted(what)  # no SELECT is one word: say what there is instead
        return Table(*self._asked(what, params))

    def why(self, name: str, row: Mapping[str, Any] | Sequence[Any]) -> Provenance:
        """Say which rows of relations a row of a view, or of a relation, is there for."""
        schema = self._hosted(name)
        (checked,) = check_rows(name, [replace(f, nullable=True) for f in schema], [row])
        with self._store.snapshot(inside=self._inside):
            return Witnesses(self._reading, inside=self._inside).why(name, checked)

    def explain(self, name: str) -> str:
        """Say how a view is kept, and why so; and what of it comes from other sites."""
        self._hosted(name)
        with self._store.reading(inside=self._inside) as handle:
            return explain(self._store.engine, name, handle.connection)

    def conflicts(self, relation: str) -> list[dict[str, Any]]:
        """Return the rows of a relation that another row of their key has beaten, with `author` and `time`.

        They were written by sites that had not heard of each other, and are kept until the key is written
        again. The author is the site's name, or its incarnation if it has none. Where the relation has such a
        column itself they are `everview_author` and `everview_time`. `everview.conflicts` has all in SQL.
        """
        target = self._relation(relation)
        if not target.is_keyed:
            raise DataError(f"{relation} has no PRIMARY KEY: no row of it beats another", relation=relation)
        names = [field.name for field in conflicts_schema(target)]
        rows = self._reading.conflicts(target, inside=self._inside)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def watch(self, name: str, callback: Callback) -> Watch:
        """Call `callback([(row, weight), …])` after each commit that changes a relation or view.

        Weights are net and not 0. It is called in the committing thread, and not at first. It may write and
        query; an exception that it raises does not undo the commit, and reaches whoever committed.
        """
        self._hosted(name)
        return self._writing.watch(name, callback)

    def changes(self, name: str, reader: str, *, snapshot: bool = False) -> ChangeLog:
        """Return the ordered log of what commits do to a relation or view, from now on, for a named reader.

        Changes are logged in the transaction that makes them, and kept until every reader has released them.
        With `snapshot` the log begins with the rows that are there. A reader that comes back gets its log.
        """
        self._hosted(name)
        return self._writing.subscribe(name, reader, snapshot=snapshot)

    def status(self) -> dict[str, Any]:
        """Return what there is to know about the store: its name, size, commits, and failed expressions."""
        found = self._reading.status(inside=self._inside)
        return found if self._inside else found | {"replication": self._replica.status()}

    # Other sites

    def sync(
        self,
        peer: Peer,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        progress: OnProgress | None = None,
    ) -> SyncReport:
        """Push and pull; afterwards both agree on what both host.

        The peer is another site, a hub, a server ("https://host:port") or a folder that sites share. A
        server's token is taken from EVERVIEW_TOKEN when none is given; `ca` names the file of the authority
        that signed its certificate, else EVERVIEW_CA does. An interrupted sync goes on where it was.
        """
        self._require_no_transaction()
        return sync_with(self.replica, peer, token=token, ca=ca, progress=progress)

    def repair(
        self,
        relation: str,
        peer: Peer,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
    ) -> SyncReport:
        """Read a relation or view again, whole, from a peer that is right; return what that moved.

        It is for when `status` has an alarm: both have seen the same, and hold different rows. Afterwards the
        rows here are the peer's, and those that others have written since. DataError for a name that is not
        hosted here, or that other sites tell nothing of.
        """
        self._require_no_transaction()
        self._hosted(relation)
        return repair_with(self.replica, relation, peer, token=token, ca=ca)

    def transport(self, on_progress: OnProgress | None = None) -> Transport:  # noqa: ARG002 - it is there at once
        """Return the way to this site for others in this process."""
        self._require_no_transaction()
        return MemoryTransport(self.replica, self.name)

    def _require_no_transaction(self) -> None:
        if self._inside:
            raise StoreError("a transaction is open in this thread; do it after that")

    @property
    def replica(self) -> Replica:
        """The site as transports and servers see it."""
        return self._replica

    @functools.cached_property
    def inspection(self) -> Inspection:
        """What a console looks at: some rows, operators, and what a deletion would do."""
        return Inspection(self._reading, self._writing)

    # Life

    def drop(self, relation: str, values: Mapping[str, Iterable[Any]]) -> None:
        """Host some values of a partitioned relation no more, as in `drop("orders", {"region": ["eu"]})`.

        Their rows go from this store and from its views, and from no other site. Sync first: what nobody else
        has by then is lost. To have them again open the site with `hosts`.
        """
        self._require_no_transaction()
        target = self._relation(relation)
        self._replica.drop(target, read_choices(target, values))

    def backup(self, path: str | os.PathLike[str], on_pages: OnPages | None = None) -> Backup:
        """Copy the present state to a file that does not exist yet, and check the copy.

        Others may go on reading and writing. `on_pages` is called with the pages copied, and with all.
        """
        self._require_no_transaction()
        return back_up(self._store, Path(path), on_pages)

    @classmethod
    def restore(
        cls,
        backup: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        replace: bool = False,
        name: str = "",
    ) -> Self:
        """Make a store of a backup, and open it: it is a new incarnation, and a sync brings what it lacks.

        With `replace` a store that is there is put aside, to `<path>.replaced`.
        """
        put_back(Path(backup), Path(path), name, put_aside=replace)
        return cls.open(path)

    @classmethod
    def migrate(
        cls,
        path: str | os.PathLike[str],
        program: Program,
        *,
        hosts: Hosts | None = None,
        dry_run: bool = False,
    ) -> Evolution:
        """Bring a store over to a changed program, all at once or not at all; nobody else may have it open.

        Relations and views may come, views may change or go, and relations get nullable columns at their end.
        ProgramError, and nothing is done, for what cannot be done safely. A site that hosts all hosts what is
        new as well; one that does not hosts what it did, and `hosts` names more, under the same program too.
        `dry_run` only says what would be done, and what is refused.
        """
        file = os.fsdecode(path)
        if not Path(file).is_file():
            raise StoreError(f"{file} is no store's file, so there is nothing to migrate", path=file)
        with cls.open(file) as site:  # also what brings an old format, or a copied file, up to date
            evolution = Evolution(site.program, program)
            if dry_run:
                return evolution
            refuse_unsafe(file, evolution)
        if evolution.is_nothing:
            cls.open(file, hosts=hosts).close()
        else:
            evolve_store(file, evolution, hosts)
        return evolution

    def close(self) -> None:
        """Close the store; nothing needs saving."""
        if self._inside:
            raise StoreError("a transaction is open in this thread; close the site after it")
        self._replica.close()

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
        return self._writing.inside

    def _hosted(self, name: str) -> Schema:
        """The columns of a relation or view that is here."""
        schema = self.program.schema(name)
        here = self._store.engine.hosted()
        if name not in here:
            raise DataError(
                f"{name} is not hosted here, only {self._shown()}; {self._adds(name)}", relation=name
            )
        return schema

    def _shown(self) -> str:
        """What is hosted here, in words; what Everview keeps for itself is left out."""
        return ", ".join(name for name in self._store.engine.hosted() if not name.startswith("everview_"))

    def _adds(self, name: str) -> str:
        """How to have a relation or view hosted as well."""
        if self._store.path == ":memory:":
            return f"open the site with hosts={{{name!r}, …}} to have it too"
        path = shlex.quote(self._store.path)
        return f"`everview migrate {path} --hosts {shlex.quote(name)}` has it host that too"

    def _bound(self, sql: str) -> Statement:
        """A statement over what is hosted here."""
        statement = self.program.bind(sql)
        for name in dict.fromkeys(scans_of(statement.plan)):
            if name != CONFLICTS:
                self._hosted(name)
        return statement

    def _asked(self, sql: str, params: Parameters) -> tuple[Schema, list[tuple[Any, ...]]]:
        """The columns, each of another name, and the rows of a SELECT."""
        statement = self._bind(sql)
        if not isinstance(statement, Query):
            raise DataError("query() takes a SELECT; writes go to execute()")
        given = arguments(statement.parameters, params)
        names = [column.name for column in statement.plan.schema]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ProgramError(f"the query has two columns {twice}", hint="name them apart with AS")
        return statement.plan.schema, self._reading.rows_of(statement.plan, given, inside=self._inside)

    def _closing(self) -> Closing:
        if self._replica.closing is None:
            raise DataError("this site hosts no windowed relation: none is declared WITH (event_time = …)")
        return self._replica.closing

    def _relation(self, name: str) -> Relation:
        found = self.program.relations.get(name)
        if found is None:
            kind = "a view, which is not written to" if name in self.program.views else "not in the program"
            raise DataError(f"{name} is {kind}", relation=name)
        self._hosted(name)
        if found.system:
            raise DataError(f"{name} is kept by Everview, and not written to", relation=name)
        return found

    def __repr__(self) -> str:
        return f"<Site {self.name!r} at {self._store.path}>"

    def _repr_html_(self) -> str:
        state = self._reading.status(inside=self._inside)
        rows = [
            (kind, name, f"{number:,}", ", ".join(map(str, self.program.schema(name))))
            for kind in ("relation", "view")
            for name, number in state[f"{kind}s"].items()
        ]
        called = state["name"] or "a site without a name"
        return (
            html.heading(f"{called} at {state['path']}")
            + html.table(("", "name", "rows", "columns"), rows, numbers=(False, False, True, False))
            + html.note(f"{state['commits']:,} commits; incarnation {state['incarnation']}")
        )
