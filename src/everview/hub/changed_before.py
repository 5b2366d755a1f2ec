"""The same as `changed`, of relations as the old replication keeps them: goes with that.

A row that grows carries the number of the commit. Some rows leave without one: what is dead and stable is
collected, and on joining a group a site drops what the group has collected. Triggers note these, so that
nothing leaves a gate before the hub has heard of it.
"""

from __future__ import annotations

from everview.engines.sqlite.names import HUB
from everview.engines.sqlite.relations import StoredRelation
from everview.engines.sqlite.relations.entries import EntriesRelation
from everview.engines.sqlite.relations.keyed import KeyedRelation
from everview.engines.sqlite.scalars.storage import column_type

__all__ = ["changed_sql", "gone_table", "noting_ddl"]

_TOLD = f"(SELECT told FROM {HUB})"
"""The commit up to which the hub has everything."""


def gone_table(stored: StoredRelation) -> str:
    """The table of rows that left a relation; of a keyed one, of keys."""
    return f"{HUB}_gone_{stored.table.name}"


def noting_ddl(stored: StoredRelation) -> list[str]:
    """What makes the table, and the trigger that fills it; a row that the hub knows as gone is not noted."""
    gone, columns = gone_table(stored), stored.table.columns
    fields = [f"{c} {column_type(f.type)}" for c, f in zip(columns, stored.table.schema, strict=True)]
    left = stored.table.name
    if isinstance(stored, EntriesRelation):
        left, when = stored.entries, ""  # of an entry alone it cannot be told what becomes of the row's sum
        noted, names = f"SELECT {stored.listed} FROM {stored.table.name} WHERE id = OLD.row", columns
    else:
        names = stored.table.key() if isinstance(stored, KeyedRelation) else columns
        noted = f"VALUES ({', '.join(f'OLD.{name}' for name in names)})"
        when = f"WHEN OLD.{stored.partial} OR OLD.version > {_TOLD} "
    note = f"INSERT INTO {gone} ({', '.join(names)}) {noted};"
    return [
        f"CREATE TABLE IF NOT EXISTS {gone} ({', '.join(['seq INTEGER PRIMARY KEY', *fields])})",
        f"CREATE TRIGGER IF NOT EXISTS {gone}_noted AFTER DELETE ON {left} {when}BEGIN {note} END",
    ]


def changed_sql(stored: StoredRelation) -> str:
    """The SELECT of the rows that changed after commit ?1, each once, and how often each is there now.

    Of a keyed relation a row that is not there stands for its key. What was noted as gone and is held again
    has come back by a later commit.
    """
    gone, name, listed = gone_table(stored), stored.table.name, stored.listed
    noted = ", ".join(f"g.{column}" for column in stored.table.columns)
    same = stored.same("r", "g")
    if isinstance(stored, KeyedRelation):
        same = " AND ".join(f"r.{key} = g.{key}" for key in stored.table.key())
        held = f"SELECT {listed}, alive = 1 FROM {name} WHERE version > ?1"
    elif isinstance(stored, EntriesRelation):
        grown = f"SELECT row FROM {stored.entries} WHERE version > ?1"
        met = f"SELECT r.id FROM {gone} AS g CROSS JOIN {name} AS r ON {same}"
        held = f"SELECT {listed}, {stored.shown('w')} FROM {name} WHERE id IN ({grown} UNION {met})"
    else:
        held = f"SELECT {listed}, cl & 1 FROM {name} WHERE version > ?1"
    unheld = f"NOT EXISTS (SELECT 1 FROM {name} AS r WHERE {same})"
    return f"{held} UNION ALL SELECT DISTINCT {noted}, 0 FROM {gone} AS g WHERE {unheld}"
