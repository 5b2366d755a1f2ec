"""Reduced relations: what of an input the host of a view keeps, in the words of a relation.

Of a set or an add-wins relation it is the tuple's id, of a keyed one the key's, of a bag only the dot.
Beside it lie the cells that the view's branches over this relation alone make of the row. Of a branch that
not every row passes, a column says whether this one does. The cells are NULL where it does not, and in the
tombstones of a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

from everview.errors import WireError
from everview.language.expressions import Expression, conjunction
from everview.language.relations import Relation, Semantics
from everview.language.types import BIGINT, BOOLEAN, Field
from everview.planner.branches import Branch
from everview.planner.cut import Core

__all__ = ["Payload", "Reduced", "core_of", "hollow_stream"]

NAMES = (Field("high", BIGINT, nullable=False), Field("low", BIGINT, nullable=False))
"""An id as two integers."""


def hollow_stream(core: str, relation: str) -> str:
    """Return the name of the stream in which an input of a core travels."""
    return f"{core}>{relation}"


def core_of(stream: str) -> str:
    """Return the core of a hollow input's stream, or of its derivations; of another stream, itself."""
    return stream.partition(">")[0] if stream.startswith("#") else stream


@dataclass(frozen=True, slots=True)
class Payload:
    """Where a reduced row has the row of a branch; `flag` is the column that says whether it has one."""

    branch: Branch
    flag: int | None
    start: int
    width: int

    @property
    def cells(self) -> range:
        """The columns of the branch's row."""
        return range(self.start, self.start + self.width)


@dataclass(frozen=True)
class Reduced:
    """An input of a core, reduced."""

    core: Core
    base: Relation

    @property
    def stream(self) -> str:
        """What it is called as it travels."""
        return hollow_stream(self.core.name, self.base.name)

    @cached_property
    def passing(self) -> Expression:
        """The condition on rows of the relation that are kept at all."""
        return self.core.passing(self.base)

    @property
    def names(self) -> tuple[Field, ...]:
        """The columns that tell rows apart; none of a bag, whose rows are all different."""
        return () if self.base.semantics is Semantics.BAG else NAMES

    @cached_property
    def payloads(self) -> tuple[Payload, ...]:
        """The branches over this relation alone."""
        found, at = [], len(self.names)
        for branch in self.core.branches:
            if len(branch.atoms) == 1 and branch.atoms[0].name == self.base.name:
                passes = conjunction(branch.conditions) == self.passing
                flag = None if passes else at
                at += not passes
                found.append(Payload(branch, flag, at, len(branch.expressions)))
                at += len(branch.expressions)
        return tuple(found)

    @cached_property
    def relation(self) -> Relation:
        """What is kept, as a relation of the same kind."""
        fields = list(self.names)
        has_tombstones = self.base.semantics is Semantics.SET
        for payload in self.payloads:
            if payload.flag is not None:
                fields.append(Field(f"p{payload.flag}", BOOLEAN, nullable=False))
            for place, field in zip(payload.cells, self.core.schema, strict=True):
                nullable = field.nullable or payload.flag is not None or has_tombstones
                fields.append(replace(field, name=f"v{place}", nullable=nullable))
        key = tuple(field.name for field in self.names) if self.base.is_keyed else ()
        return Relation(self.stream, tuple(fields), self.base.semantics, key)

    def check(self, columns: Sequence[Sequence[Any]]) -> None:
        """Raise WireError where a row that passes a branch has NULL in a column that never is."""
        for payload in self.payloads:
            if not any(None in columns[place] for place in payload.cells):
                continue
            if payload.flag is not None:
                passes = columns[payload.flag]
            elif self.base.semantics is Semantics.SET:
                passes = [length & 1 for length in columns[-1]]
            else:
                continue
            for place, field in zip(payload.cells, self.core.schema, strict=True):
                if not field.nullable and None in compress(columns[place], passes):
                    raise WireError(f"{self.stream}, {field.name}: NULL, where no NULL may be", where="value")
