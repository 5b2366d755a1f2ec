"""What has changed in a gate since a commit: rows as they are now, and how often each is there.

A row that comes carries the number of the commit, and so does one that takes the place of another. Rows also
leave: triggers note these, so that nothing leaves a gate before the hub has heard of it.
"""

from __future__ import annotations

from everview.engines.sqlite.names import HUB
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.relations import Semantics

__all__ = ["changed_sql", "gone_table", "noting_ddl"]

_TOLD = f"(SELECT told FROM {HUB})"
"""The commit up to which the hub has everything."""


def gone_table(stored: StoredRows) -> str:
    """The table of rows that left a relation; of a keyed one, of keys."""
    return f"{HUB}_gone_{stored.table.name}"


def noting_ddl(stored: StoredRows) -> list[str]:
    """What finds the changes: an index of versions, and a trigger that notes rows that leave.

    A row that the hub knows as gone is not noted.
    """
    gone, name = gone_table(stored), stored.table.name
    columns = zip(stored.table.columns, stored.table.schema, strict=True)
    fields = [f"{column} {column_type(field.type)}" for column, field in columns]
    noted = _named_by(stored)
    note = f"INSERT INTO {gone} ({', '.join(noted)}) VALUES ({', '.join(f'OLD.{c}' for c in noted)});"
    when = f"WHEN OLD.{stored.partial} OR OLD.version > {_TOLD} " if stored.partial else ""
    return [
        f"CREATE TABLE IF NOT EXISTS {gone} ({', '.join(['seq INTEGER PRIMARY KEY', *fields])})",
        f"CREATE TRIGGER IF NOT EXISTS {gone}_noted AFTER DELETE ON {name} {when}BEGIN {note} END",
        f"CREATE INDEX IF NOT EXISTS {name}_version ON {name} (version)",
    ]


def changed_sql(stored: StoredRows) -> str:
    """The SELECT of the rows that changed after commit ?1, each once, and how often each is there now.

    Of a keyed relation a row that is not there stands for its key. What was noted as gone and is held again
    has come back by a later commit, or had not gone.
    """
    gone, name = gone_table(stored), stored.table.name
    listed = ", ".join(stored.table.columns)
    came = f"FROM {name} WHERE version > ?1"
    if stored.relation.semantics is Semantics.BAG:
        copies = f"SELECT count(*) FROM {name} AS r WHERE {stored.same('r', 'g')}"
        either = f"SELECT {listed} {came} UNION SELECT {listed} FROM {gone}"
        return f"SELECT {listed}, ({copies}) FROM ({either}) AS g"
    same = stored.same("r", "g")
    if stored.relation.is_keyed:
        same = " AND ".join(f"r.{key} = g.{key}" for key in _named_by(stored))
    unheld = f"NOT EXISTS (SELECT 1 FROM {name} AS r WHERE {same})"
    return (
        f"SELECT {listed}, {stored.is_shown()} {came} "
        f"UNION ALL SELECT DISTINCT {listed}, 0 FROM {gone} AS g WHERE {unheld}"
    )


def _named_by(stored: StoredRows) -> tuple[str, ...]:
    """The columns by which the hub knows what has gone."""
    return stored.table.key() if stored.relation.is_keyed else stored.table.columns
