"""The file's format: its number, and one step from each number to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from everview.engines.sqlite.derivations.keyed_ids import KeyedIds
from everview.engines.sqlite.derivations.liveness import Liveness
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.ids import halves
from everview.engines.sqlite.names import HOSTS, SITES, STORE
from everview.engines.sqlite.relations import StoredRelation
from everview.engines.sqlite.schema import REPLICATION_DDL, STORE_DDL
from everview.language.program import Program
from everview.language.relations import Semantics

FORMAT = 4
"""The format that this version writes. A change of it leaves a small file in `tests/prior_stores/`."""


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a file up to the current format, step by step, each in a transaction of its own."""
    while version < FORMAT:
        connection.execute("BEGIN IMMEDIATE")
        try:
            MIGRATIONS[version](connection)
            version += 1
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _to_2(connection: sqlite3.Connection) -> None:
    """Format 2 knows other sites: every row has an origin, bags and add-wins relations have entries.

    All that format 1 holds was written by the site itself; the views are made anew on opening.
    """
    old = dict(
        zip(
            ("program", "program_hash", "site", "incarnation", "version", "failures"),
            connection.execute(
                f"SELECT program, program_hash, site, incarnation, version, failures FROM {STORE}"
            ).fetchone(),
            strict=True,
        )
    )
    connection.execute(f"ALTER TABLE {STORE} RENAME TO everview_store_1")
    connection.execute(STORE_DDL)
    connection.execute(
        f"INSERT INTO {STORE} VALUES (1, :program, :program_hash, :site, :incarnation, :version, 0, "
        ":version, 0, :failures, '', '')",
        old,
    )
    connection.execute("DROP TABLE everview_store_1")
    for statement in REPLICATION_DDL:
        connection.execute(statement)
    own = (old["incarnation"], old["site"])
    connection.execute(f"INSERT INTO {SITES} VALUES (0, ?, ?), (1, ?, ?)", own * 2)
    for (view,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
        connection.execute(f'DROP VIEW "{view}"')
    for relation in Engine(Program.stored(old["program"])).relations.values():
        _relation_to_2(connection, relation)


def _relation_to_2(connection: sqlite3.Connection, relation: StoredRelation) -> None:
    name = relation.table.name
    connection.execute(f"DROP INDEX IF EXISTS {name}_row")
    connection.execute(f"ALTER TABLE {name} RENAME TO everview_old")
    for statement in relation.ddl():
        connection.execute(statement)
    listed = ", ".join(relation.table.columns)
    match relation.relation.semantics:
        case Semantics.SET:
            connection.execute(f"INSERT INTO {name} SELECT {listed}, cl, version, 0, 0 FROM everview_old")
        case Semantics.KEYED:
            connection.execute(
                f"INSERT INTO {name} SELECT {listed}, alive, version, version, 0, 0 FROM everview_old"
            )
        case Semantics.BAG | Semantics.ADD_WINS as kind:
            connection.execute(f"INSERT INTO {name} ({listed}, w) SELECT {listed}, w FROM everview_old")
            same = relation.same("r", "o")
            numbered = f"FROM everview_old AS o CROSS JOIN {name} AS r ON {same} WHERE o.w <> 0"
            value = "o.w, o.version" if kind is Semantics.BAG else "1, 0, 0, o.version"
            connection.execute(f"INSERT INTO {name}_entries SELECT r.id, 1, o.version, {value} {numbered}")
            if kind is Semantics.ADD_WINS:  # several insertions of one row are one from here on
                connection.execute(f"UPDATE {name} SET w = 1 WHERE w > 0")
    connection.execute("DROP TABLE everview_old")


def _to_3(connection: sqlite3.Connection) -> None:
    """In format 3 the ids that received views know are pairs of integers."""
    (text,) = connection.execute(f"SELECT program FROM {STORE}").fetchone()
    program = Program.stored(text)
    hosts = frozenset(name for (name,) in connection.execute(f"SELECT name FROM {HOSTS}"))
    connection.create_function(
        "everview_half",
        2,
        lambda id_, half: None if id_ is None else halves(id_)[half],
        deterministic=True,
    )
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for received in Engine(program, hosts or frozenset(program.names())).received.values():
        if there.issuperset(received.tables):  # less was received then
            for liveness in received.inputs:
                _liveness_to_3(connection, liveness)


def _liveness_to_3(connection: sqlite3.Connection, liveness: Liveness) -> None:
    split = {"c0": ("c0", "c1")}
    if isinstance(liveness, KeyedIds):
        split |= {"c1": ("c2", "c3"), "id": liveness.halves}
    for table in liveness.tables:
        connection.execute(f"CREATE TABLE {table}_old AS SELECT * FROM {table}")
        connection.execute(f"DROP TABLE {table}")
    for statement in liveness.ddl():
        connection.execute(statement)
    for table in liveness.tables:
        names: list[str] = []
        terms: list[str] = []
        for _, column, *_ in connection.execute(f"PRAGMA table_info({table}_old)").fetchall():
            names += split.get(column, (column,))
            terms += [f"everview_half({column}, {half})" for half in (0, 1)] if column in split else (column,)
        connection.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(terms)} FROM {table}_old"
        )
        connection.execute(f"DROP TABLE {table}_old")


def _to_4(_connection: sqlite3.Connection) -> None:
    """In format 4 a site among many keeps the list of members apart: an older version would not see it."""


MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _to_2, 2: _to_3, 3: _to_4}
"""Format n → what turns a file of format n into one of n + 1."""
