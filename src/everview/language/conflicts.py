"""Conflicts as queries see them: rows that lost against another row of their key.

`everview_conflicts`, or `everview.conflicts`, has one row for each: the relation, key and row as JSON, who
wrote it and when. It is no part of a program: views do not read it, and it does not travel.
"""

from __future__ import annotations

from everview.language.plan import Schema
from everview.language.relations import Relation
from everview.language.types import TEXT, TIMESTAMP, Field

__all__ = ["CONFLICTS", "CONFLICTS_SCHEMA", "conflicts_schema"]

CONFLICTS = "everview_conflicts"

CONFLICTS_SCHEMA: Schema = (
    Field("relation", TEXT, nullable=False),
    Field("key", TEXT, nullable=False),
    Field("row", TEXT, nullable=False),
    Field("author", TEXT, nullable=False),
    Field("time", TIMESTAMP, nullable=False),
)


def conflicts_schema(relation: Relation) -> Schema:
    """Return the columns of a relation's conflicts: its own, then author and time.

    These begin with `everview_` where the relation has such a column itself.
    """
    said = [
        Field(f"everview_{name}" if name in relation.columns else name, kind, nullable=False)
        for name, kind in (("author", TEXT), ("time", TIMESTAMP))
    ]
    return (*relation.schema, *said)
