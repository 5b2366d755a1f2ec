"""Evolving: a store's tables for another program, in one transaction.

What is the truth stays: the rows of relations, and what has come of views whose definition is the same. All
else follows from it and is made anew. Tables are numbered in the order of the declarations, so a relation
may have to move, and one that gets columns is copied with NULLs in them; what has its place already is not
touched.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from everview.engines.sqlite.circuits.names import internal, quoted
from everview.engines.sqlite.complaints import Explained
from everview.engines.sqlite.connections import connect
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.environment import THE_WORLD
from everview.engines.sqlite.hosting import checked_hosts
from everview.engines.sqlite.names import HOSTS, LOG, PAGES, READERS, STORE
from everview.engines.sqlite.opening import (
    drop_derived,
    layout_of,
    make_sources,
    make_views,
    more_parts,
    store_hosts,
)
from everview.engines.sqlite.rows.identity import rename
from everview.engines.sqlite.rows.ledger import drop_partitions, has_met
from everview.engines.sqlite.rows.peers import CURSORS
from everview.errors import ProgramError, StoreError
from everview.language.evolution import Evolution
from everview.language.partitions import Choices
from everview.planner.published import published_stream

NO_PARTS: Mapping[str, Choices] = {}

ALONE_SECONDS = 1.0
"""How long to wait for others to close the file."""


@dataclass(frozen=True, slots=True)
class Evolved:
    """The engines of a store before and after; both name the tables and streams of their program."""

    old: Engine
    new: Engine
    evolution: Evolution


class Alone:
    """A connection to a file that nobody else has open, or StoreError."""

    def __init__(self, path: str) -> None:
        self._path = path
        with Explained(path, "opened"):
            self.connection = connect(path, lambda _what: None).connection
        try:
            # Whoever has the file open keeps a lock on it; in this mode SQLite wants it for itself.
            self.connection.execute(f"PRAGMA busy_timeout = {int(ALONE_SECONDS * 1000)}")
            self.connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            self.connection.close()
            if "locked" not in str(error):
                raise StoreError(f"{path} cannot be opened: {error}", path=path) from error
            raise StoreError(
                f"{path} is in use; stop what has it open (`everview serve`, or a program of yours), and try "
                "again",
                path=path,
            ) from None

    def __enter__(self) -> sqlite3.Connection:
        return self.connection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with closing(self.connection), Explained(self._path, "written to"):
            if self.connection.in_transaction:
                self.connection.execute("COMMIT" if kind is None else "ROLLBACK")


def evolve_store(path: str, evolution: Evolution, hosts: Iterable[str] | None = None) -> Evolved:
    """Bring a store over to another program: all of it, or nothing."""
    with Alone(path) as connection:
        wanted = new_hosts(path, hosted_by(connection), evolution, hosts)
        parts = more_parts(connection, evolution.new, hosts)
        return evolve(connection, path, evolution, wanted, parts=parts)


def hosted_by(connection: sqlite3.Connection) -> frozenset[str]:
    """What a store says it hosts; nothing stands for all."""
    return frozenset(name for (name,) in connection.execute(f"SELECT name FROM {HOSTS}"))


def refuse_unsafe(path: str, evolution: Evolution) -> None:
    """ProgramError with all that cannot be done, if there is something."""
    if evolution.refused:
        raise ProgramError(
            f"{Path(path).name} cannot go over to this program: {'; '.join(evolution.refused)}"
        )


def evolve(
    connection: sqlite3.Connection,
    path: str,
    evolution: Evolution,
    hosts: frozenset[str],
    *,
    parts: Mapping[str, Choices] = NO_PARTS,
    computes: bool = True,
) -> Evolved:
    """Make the tables those of the new program, of which the store hosts these, inside a transaction."""
    old_program, new_program = evolution.old, evolution.new
    found = connection.execute(f"SELECT program_hash, site FROM {STORE}").fetchone()
    if found is None or found[0] != old_program.hash:
        raise StoreError(f"{path} has just been given another program; look at the plan again", path=path)
    refuse_unsafe(path, evolution)
    stored = hosted_by(connection)
    called = found[1] if computes else ""
    old = Engine(old_program, stored or frozenset(old_program.names()), called)
    new = Engine(new_program, hosts, called)
    _check_readers(connection, path, evolution, new)
    # An earlier version may have received less of the same views.
    make_sources(connection, old, drop_derived(connection, old))
    _move(connection, old, new, evolution)
    make_views(connection, new)
    store_hosts(connection, new, parts)
    _keep_partitions(connection, new, evolution)
    connection.execute(f"DELETE FROM {PAGES}")  # of cuts that were asked for under the old program
    connection.execute(
        f"UPDATE {STORE} SET program = ?, program_hash = ?, layout = ?",
        (new_program.text, new_program.hash, layout_of(new)),
    )
    return Evolved(old, new, evolution)


def _keep_partitions(connection: sqlite3.Connection, new: Engine, evolution: Evolution) -> None:
    """Forget what was seen of streams that are not held any more; index by dots those that have come.

    A view that is published is named by its name alone: one with another definition begins anew.
    """
    changed = {published_stream(name) for name in evolution.new.views.keys() - evolution.same_views}
    if drop_partitions(connection, {*new.relations, *new.shares} - changed):
        rename(connection, THE_WORLD.incarnation(), new.name)
    connection.execute(f"DELETE FROM {CURSORS}")  # they speak of what was read then
    if has_met(connection):
        for stored in new.shares.values():
            for statement in stored.dot_ddl():
                connection.execute(statement)


def new_hosts(
    path: str, stored: frozenset[str], evolution: Evolution, more: Iterable[str] | None
) -> frozenset[str]:
    """What the store hosts from now on: what it did and there is still, and more if that is said."""
    new = evolution.new
    if not stored:
        checked_hosts(new, more)
        return frozenset(new.names())
    wanted = (stored & frozenset(new.names())) | frozenset(more or ())
    if not wanted:
        raise StoreError(
            f"{path} hosts only {', '.join(sorted(stored))}, of which nothing would be left: say with "
            "--hosts what it is to host",
            path=path,
        )
    return checked_hosts(new, wanted)


def _check_readers(connection: sqlite3.Connection, path: str, evolution: Evolution, new: Engine) -> None:
    """A log of changes goes on only where the rows do: who reads another has to come to its end first."""
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (READERS,)).fetchone()
    if there is None:
        return
    goes_on = {*evolution.kept, *evolution.same_views} & set(new.hosted())
    for reader, name in connection.execute(
        f"SELECT reader, name FROM {READERS} WHERE reader <> ''"
    ).fetchall():
        if name not in goes_on:
            raise StoreError(
                f"{path}: {reader} reads the changes of {name} in order, and {name} changes with the "
                "program; let it read to the end, end its subscription "
                f"(site.changes({name!r}, {reader!r}).cancel()), and migrate again",
                path=path,
            )
    connection.execute(f"DELETE FROM {LOG} WHERE name NOT IN (SELECT name FROM {READERS})")


def _move(connection: sqlite3.Connection, old: Engine, new: Engine, evolution: Evolution) -> None:
    """Bring every table that stays to its new place, and make those that are new."""
    stays = _staying(old, new, evolution)
    moving = {name for name in stays if old.sources[name].ddl() != new.sources[name].ddl()}
    aside: dict[str, str] = {}
    for name, source in old.sources.items():
        for table in source.tables:
            if name in moving:
                aside[table] = internal(f"moved_{len(aside)}")
                connection.execute(f"ALTER TABLE {table} RENAME TO {aside[table]}")
            elif name not in stays:
                connection.execute(f"DROP TABLE {table}")
    for table in aside.values():  # their names are wanted
        _drop_indexes(connection, table)
    for name, source in new.sources.items():
        if name in stays and name not in moving:
            continue
        for statement in source.ddl():
            connection.execute(statement)
        if name in moving:
            for before, after in zip(old.sources[name].tables, source.tables, strict=True):
                _copy(connection, aside[before], after)
    for table in aside.values():
        connection.execute(f"DROP TABLE {table}")


def _staying(old: Engine, new: Engine, evolution: Evolution) -> set[str]:
    """The relations and streams whose tables are the truth under both programs.

    What comes of views is named by what it says, but for published views, which are named by the view.
    """
    published = {published_stream(view) for view in evolution.same_views}
    return {
        name
        for name in old.sources.keys() & new.sources.keys()
        if name in old.relations or name not in old.published or name in published
    }


def _drop_indexes(connection: sqlite3.Connection, table: str) -> None:
    found = connection.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
        (table,),
    )
    for (name,) in found.fetchall():
        connection.execute(f"DROP INDEX {quoted(name)}")


def _copy(connection: sqlite3.Connection, before: str, after: str) -> None:
    """Copy all rows; columns that only the new table has are NULL."""
    listed = ", ".join(
        column for _, column, *_ in connection.execute(f"PRAGMA table_info({before})").fetchall()
    )
    connection.execute(f"DELETE FROM {after}")  # a table may begin with a row
    connection.execute(f"INSERT INTO {after} ({listed}) SELECT {listed} FROM {before}")
