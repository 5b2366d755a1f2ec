"""Whose file is this: creating a store, recognising one, and refusing what is none or is damaged.

The file says what it is: SQLite's `application_id`, the number of its format in `user_version`, and in
the table `everview_store` the program's text and hash. The relations are the truth. The tables of views
follow from them and from how this version compiles the program, which may change from one version to the
next without a new format: when the layout in the file is another one, the views are made anew.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from everview.engines.sqlite.circuits.names import BY, quoted
from everview.engines.sqlite.complaints import damaged
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.hosting import checked_hosts
from everview.engines.sqlite.names import FORMAT, HOSTS, HUB, LOG, PAGES, READERS, STORE, TAGS
from everview.engines.sqlite.partitions import choices_of
from everview.engines.sqlite.rows.digests import salt_of
from everview.engines.sqlite.rows.ledger import (
    ENDED,
    OPENED,
    PARTITIONS,
    REMOVED,
    SITES,
    VECTORS,
    hosted_parts,
)
from everview.engines.sqlite.rows.peers import ADDRESSES, ALARMS, CURSORS
from everview.engines.sqlite.rows.refusals import REFUSED
from everview.engines.sqlite.rows.tombstones import MOMENTS
from everview.engines.sqlite.schema import STORE_DDL
from everview.errors import ProgramError, StoreError
from everview.language.partitions import Choices
from everview.language.program import Program

APPLICATION_ID = 0x45565657
"""'EVVW' in the file's header: what `file` and we know a store by."""

T = TypeVar("T")

STATES = 2
"""Counts up when the same tables come to mean something else; then all views are made anew."""


def open_store(
    connection: sqlite3.Connection,
    path: str,
    program: Program | None,
    name: str,
    environment: Environment,
    hosts: Iterable[str] | None = None,
    *,
    computes: bool = True,
) -> tuple[Engine, str]:
    """Check whose file this is, and create the tables of a new one; return its engine and the site's name.

    A store that publishes views and does not compute them receives them like any other, from its own site.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if _tables(connection) and application != APPLICATION_ID:
        raise StoreError(
            f"{path} is a database of something else, not an Everview store; choose another path", path=path
        )
    if connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
        connection.execute("PRAGMA journal_mode = WAL")  # files remember it
    made: Engine | None = None
    if not _tables(connection):
        if program is None:
            raise StoreError(f"{path} is no store yet, so a program is needed to create it", path=path)
        called = name if computes else ""
        made = _transact(connection, lambda: _create(connection, program, name, environment, hosts, called))
    return _reopen(connection, path, program, name, hosts, computes=computes, made=made)


def _tables(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _transact(connection: sqlite3.Connection, run: Callable[[], T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = run()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def _create(
    connection: sqlite3.Connection,
    program: Program,
    name: str,
    environment: Environment,
    hosts: Iterable[str] | None,
    called: str,
) -> Engine | None:
    if _tables(connection):  # another process was quicker
        return None
    names, parts = checked_hosts(program, hosts), choices_of(program, hosts)
    engine = Engine(program, names, called, name)
    for statement in STORE_DDL:
        connection.execute(statement)
    incarnation = environment.incarnation()
    connection.execute(
        f"INSERT INTO {STORE} VALUES (1, ?, ?, ?, ?, 0, 0, 0, 0, '', ?)",
        (program.text, program.hash, name, incarnation, layout_of(engine)),
    )
    connection.execute(
        f"INSERT INTO {SITES} VALUES (0, ?, ?, ?, 0)", (incarnation, name, salt_of(incarnation))
    )
    store_hosts(connection, engine, parts)
    for statement in engine.relation_ddl():
        connection.execute(statement)
    make_views(connection, engine)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    return engine


def _reopen(
    connection: sqlite3.Connection,
    path: str,
    program: Program | None,
    name: str,
    hosts: Iterable[str] | None,
    *,
    computes: bool,
    made: Engine | None,
) -> tuple[Engine, str]:
    """Check a store's file against the program and compile that, unless it was `made` just now."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > FORMAT:
        raise StoreError(
            f"{path} has format {version}, and this Everview knows up to {FORMAT}; "
            "upgrade Everview to open it",
            path=path,
        )
    if version < 1:
        raise damaged(path, f"there is no format {version}")
    if version < FORMAT:
        raise StoreError(
            f"{path} has format {version}, of an Everview that was never released; this one reads format "
            f"{FORMAT} alone: make a new store, and insert the rows again",
            path=path,
        )
    found = connection.execute(f"SELECT program, program_hash, site, layout FROM {STORE}").fetchone()
    if found is None:
        raise damaged(path, "it does not say what program it is for")
    text, digest, site, layout = found
    if program is not None and program.hash != digest:
        raise StoreError(
            f"{path} was made for another program (hash {digest[:12]}, not {program.hash[:12]}); "
            f"`everview migrate {path} --program FILE` brings it over to a changed one",
            path=path,
        )
    # The text in the file, even when a program is given: that one may declare the same in another order,
    # and the tables are numbered in the order of the declarations.
    declared = program
    if declared is None or declared.text != text:
        declared = _stored_program(path, text, digest)
    if made is not None:
        return made, site
    called = (name or site) if computes else ""
    names, parts = _hosts(connection, declared, hosts), more_parts(connection, declared, hosts)
    engine = Engine(declared, names, called, name or site)
    if layout != layout_of(engine):
        _transact(connection, lambda: _remake_views(connection, engine, parts))
    elif parts != hosted_parts(connection):
        _transact(connection, lambda: store_hosts(connection, engine, parts))
    return engine, name or site


def _stored_program(path: str, text: str, digest: str) -> Program:
    try:
        program = Program.stored(text)
    except ProgramError as error:
        raise damaged(path, f"the program in it cannot be read ({error})") from error
    if program.hash != digest:
        raise damaged(path, "the program in it has changed")
    return program


def layout_of(engine: Engine) -> str:
    """A hash of what is shown, and of the tables and indexes that hold the views."""
    tables = [*engine.circuit.ddl, *engine.circuit.index_ddl(), *engine.hosted(), *engine.truth]
    tables += [f"publishes {published.view.name}" for published in engine.own()]
    tables += [f"writes {stream} as {author.owner.name}" for stream, author in engine.authors.items()]
    return hashlib.sha256("\n".join([str(STATES), *sorted(tables)]).encode()).hexdigest()


def _hosts(connection: sqlite3.Connection, program: Program, hosts: Iterable[str] | None) -> frozenset[str]:
    """What the store hosts, and what more it is to host from now on."""
    stored = {name for (name,) in connection.execute(f"SELECT name FROM {HOSTS}")}
    if not stored:
        checked_hosts(program, hosts)
        return frozenset(program.names())
    return frozenset(stored) if hosts is None else checked_hosts(program, hosts) | stored


def more_parts(
    connection: sqlite3.Connection, program: Program, hosts: Iterable[str] | None
) -> dict[str, Choices]:
    """Return which values a store hosts of partitioned relations, once it hosts more; others are whole."""
    parts, more = hosted_parts(connection), choices_of(program, hosts)
    stored = {name for (name,) in connection.execute(f"SELECT name FROM {HOSTS}")}
    kept = {name: choices for name, choices in parts.items() if name in program.relations}
    for name in () if hosts is None else hosts:
        if name in more and name in kept:
            kept[name] |= more[name]
        elif name in more and stored and name not in stored:
            kept[name] = more[name]
        elif name not in more:
            kept.pop(name, None)
    return kept


def store_hosts(connection: sqlite3.Connection, engine: Engine, parts: Mapping[str, Choices]) -> None:
    """Say in the file what it hosts, and which values of what; nothing stands for all."""
    names = engine.hosted()
    connection.execute(f"DELETE FROM {HOSTS}")
    if parts or len(names) < len(list(engine.program.names())):
        rows = [(name, choice) for name in names for choice in sorted(parts.get(name, ("",)))]
        connection.executemany(f"INSERT INTO {HOSTS} VALUES (?, ?)", rows)


def make_views(connection: sqlite3.Connection, engine: Engine) -> None:
    """Make what follows from the tables of relations, and of what has come of views."""
    engine.prepare(connection)
    engine.create_views(connection)
    for table in engine.circuit.temporary:
        connection.execute(f"DROP TABLE {table}")


def drop_derived(connection: sqlite3.Connection, engine: Engine) -> set[str]:
    """Drop all that follows from other tables; return the tables and views that there were."""
    kept = {
        ENDED,
        OPENED,
        MOMENTS,
        REFUSED,
        CURSORS,
        ADDRESSES,
        ALARMS,
        PARTITIONS,
        REMOVED,
        VECTORS,
        STORE,
        SITES,
        TAGS,
        PAGES,
        HOSTS,
        LOG,
        READERS,
        *engine.truth,
    }
    entries = connection.execute(
        "SELECT type, name, tbl_name FROM main.sqlite_master WHERE sql IS NOT NULL"
    ).fetchall()
    for kind in ("view", "index", "table"):
        for type_, name, table in entries:
            own = type_ == "index" and table in kept and BY not in name
            if type_ == kind and name not in kept and not own and not name.startswith(HUB):
                connection.execute(f"DROP {kind.upper()} IF EXISTS main.{quoted(name)}")
    return {name for _, name, _ in entries}


def make_sources(connection: sqlite3.Connection, engine: Engine, there: Collection[str]) -> None:
    """Make the tables of relations, and of what comes of views, that are not there yet."""
    for source in engine.sources.values():
        for statement in source.ddl() if set(there).isdisjoint(source.tables) else ():
            connection.execute(statement)


def _remake_views(connection: sqlite3.Connection, engine: Engine, parts: Mapping[str, Choices]) -> None:
    """Drop all that follows from other tables, and make it anew from them.

    What is hosted may have changed too: then some of those tables are new, and others are of no use any more.
    """
    make_sources(connection, engine, drop_derived(connection, engine))
    make_views(connection, engine)
    store_hosts(connection, engine, parts)
    connection.execute(f"UPDATE {STORE} SET layout = ?", (layout_of(engine),))
