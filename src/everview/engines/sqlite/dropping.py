"""Dropping: a store that hosts fewer values of a relation forgets their rows, and that it saw them.

Nobody is told: to forget is no removal. Should a value come again, it begins with an empty vector.
"""

from __future__ import annotations

import sqlite3

from everview.engines.sqlite.engine import Engine, OnChange
from everview.engines.sqlite.names import HOSTS, PAGES
from everview.engines.sqlite.partitions import said
from everview.engines.sqlite.rows.base import GONE, StoredRows, dots_within
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.ledger import PARTITIONS, forget_partitions
from everview.engines.sqlite.rows.peers import ALARMS, CURSORS
from everview.errors import DataError
from everview.language.partitions import Choices, covers
from everview.language.relations import Relation

__all__ = ["drop_values", "without"]


def without(relation: Relation, hosted: Choices | None, dropped: Choices | None) -> Choices:
    """Return which hosted values are left; DataError where that cannot be said, or nothing is."""
    if hosted is None or dropped is None:
        raise DataError(
            f"{relation.name} is hosted whole, and values can be dropped only where some were chosen",
            relation=relation.name,
        )
    left = frozenset(choice for choice in hosted if not covers(dropped, choice))
    if not left:
        raise DataError(
            f"nothing would be left of {relation.name}: host the values that are to come instead first",
            relation=relation.name,
        )
    for choice in sorted(dropped):
        if covers(left, choice) or not any(covers(frozenset({choice}), one) for one in hosted):
            raise DataError(
                f"{relation.name}: {said(relation, choice)} was not chosen to be hosted; chosen are "
                f"{'; '.join(said(relation, one) for one in sorted(hosted))}",
                relation=relation.name,
            )
    return left


def drop_values(
    connection: sqlite3.Connection,
    engine: Engine,
    commit: Commit,
    stored: StoredRows,
    left: Choices,
    on_change: OnChange,
) -> bool:
    """Host these values and no others of a relation; return whether the store wrote what it forgets.

    Then it must go on as another incarnation, or it would give the same numbers again.
    """
    known = connection.execute(f"SELECT number, value FROM {PARTITIONS} WHERE stream = ?", (stored.stream,))
    gone = {number: value for number, value in known.fetchall() if value and not covers(left, value)}
    for number, value in gone.items():
        connection.execute(f"DELETE FROM {GONE}")
        for table in stored.tables:
            rows = f"SELECT r.dot FROM {dots_within(table)}"
            connection.execute(f"INSERT INTO {GONE} {rows}", {"partition": number})
        stored.remove(connection, commit.version)
        engine.propagate(connection, (stored.delta,), on_change, shrinks=True)
        connection.execute(f"DELETE FROM {ALARMS} WHERE stream = ? AND value = ?", (stored.stream, value))
    for table in (CURSORS, PAGES):  # they speak of what was hosted then
        connection.execute(f"DELETE FROM {table}")
    connection.execute(f"DELETE FROM {HOSTS} WHERE name = ?", (stored.relation.name,))
    chosen = [(stored.relation.name, choice) for choice in sorted(left)]
    connection.executemany(f"INSERT INTO {HOSTS} VALUES (?, ?)", chosen)
    commit.grown = True
    return forget_partitions(connection, gone)
