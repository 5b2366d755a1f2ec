"""Windowed relations, and what Everview keeps beside them.

A relation that is declared with an event time and its sources is written by these only, each its own rows,
and each closes windows. `everview_closed` has, by source and relation, how far it has closed and what it had
written by then; it travels like any relation. `everview_progress` is each site's own: how far a source has
closed *and* all that it wrote by then is here. `everview_late_…` has what came to the owner's door too late.
Every store that has such relations writes itself into `everview_participants`; a source that was put back
asks these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from everview.language.plan import Schema
from everview.language.relations import Relation, Semantics
from everview.language.types import TEXT, TIMESTAMP, Field

__all__ = ["CLOSED", "OPERATION", "PARTICIPANTS", "PROGRESS", "companions", "late_name", "windowed_relations"]

CLOSED = "everview_closed"
PROGRESS = "everview_progress"
PARTICIPANTS = "everview_participants"
OPERATION = "everview_operation"
"""The column of a late row that says whether it was to be inserted or deleted."""

_MARKER: Schema = (
    Field("source", TEXT, nullable=False),
    Field("relation", TEXT, nullable=False),
    Field("until", TIMESTAMP, nullable=True),
    Field("vector", TEXT, nullable=False),
)
_KEY = ("source", "relation")
_PARTICIPANT: Schema = (Field("site", TEXT, nullable=False), Field("heard", TEXT, nullable=False))


def late_name(relation: str) -> str:
    """Where the rows of a relation go that come too late."""
    return f"everview_late_{relation}"


def windowed_relations(relations: Mapping[str, Relation]) -> dict[str, Relation]:
    """The relations that are declared with an event time."""
    return {name: relation for name, relation in relations.items() if relation.event_time is not None}


def companions(relations: Iterable[Relation]) -> list[Relation]:
    """What is kept beside the windowed among these relations: nothing if there are none."""
    windowed = [relation for relation in relations if relation.event_time is not None]
    if not windowed:
        return []
    late = [
        Relation(
            late_name(relation.name),
            (*relation.schema, Field(OPERATION, TEXT, nullable=False)),
            Semantics.BAG,
            owner=relation.owner,
        )
        for relation in windowed
    ]
    closed = Relation(CLOSED, _MARKER, Semantics.KEYED, _KEY, "source", system=True)
    progress = Relation(PROGRESS, _MARKER[:3], Semantics.KEYED, _KEY, system=True, local=True)
    participants = Relation(PARTICIPANTS, _PARTICIPANT, Semantics.KEYED, ("site",), system=True)
    return [closed, progress, participants, *late]
