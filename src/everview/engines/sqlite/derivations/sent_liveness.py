"""Sending liveness from a site that holds the relation: its own lattice rows, as ids."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.derivations.hashing import key_hasher, row_hasher
from everview.engines.sqlite.parts import (
    CHUNK_BYTES,
    COUNT,
    ID,
    OPTIONAL_ID,
    SITE,
    Arrival,
    Chunk,
    PartColumn,
    Position,
    Row,
)
from everview.engines.sqlite.relations.base import StoredRelation
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.language.expressions import TRUE, Expression
from everview.language.relations import Semantics


@dataclass
class SentLiveness:
    """The liveness of a relation's rows that pass a condition, as a part of a stream that is only read."""

    stored: StoredRelation
    passing: Expression

    @property
    def columns(self) -> tuple[PartColumn, ...]:
        """The id, the lattice's value, and the origin."""
        match self.stored.relation.semantics:
            case Semantics.SET:
                return (ID, COUNT, SITE, COUNT)
            case Semantics.KEYED:
                return (ID, OPTIONAL_ID, COUNT, COUNT, SITE, COUNT)
            case _:
                return (ID, COUNT, SITE, COUNT, SITE, COUNT)

    def version_ddl(self) -> list[str]:
        """Return what creates the indexes by which changes are found."""
        return self.stored.version_ddl()

    @cached_property
    def _where(self) -> str:
        if self.passing == TRUE:
            return "1"
        return f"({compile_expression(self.passing, columns(len(self.stored.relation.schema)))})"

    @cached_property
    def _ids(self) -> Callable[[Row], Row]:
        relation = self.stored.relation
        row_id, width = row_hasher(relation), len(relation.schema)
        if relation.semantics is not Semantics.KEYED:
            return lambda row: (row_id(row), *row[width:])
        key_id = key_hasher(relation)
        return lambda row: (key_id(row), row_id(row) if row[width] == 1 else None, *row[width:])

    def read(
        self,
        connection: sqlite3.Connection,
        since: int,
        after: Position | None,
        limit: int,
        room: int = CHUNK_BYTES,
    ) -> Chunk:
        """Return what has grown since a version; rows are read for it, and only their ids are told."""
        chunk = self.stored.read(connection, since, after, limit, room, where=self._where)
        return Chunk(list(map(self._ids, chunk.rows)), chunk.reached)

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Nothing is merged into what is derived."""
        raise AssertionError("a stream that is derived here is not read from elsewhere")
