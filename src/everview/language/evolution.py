"""Evolution: what becomes of relations and views when a program takes the place of another.

A relation is known across programs by its name, its kind, its key and its columns in order. It may grow by
nullable columns at its end: a row of the narrower relation is then the row of the wider one with NULLs there,
which is the same tuple, for ids leave NULLs out. Different rows stay different, and so do keys; so whatever
rows of the narrower relation come to by any merges, the widened rows come to as well. No other change of a
relation is of this kind, and each is refused with what to do instead.

A view follows from relations, so any change of it is safe where it is computed. Where a view comes from
elsewhere, what has come is of use only to the same definition, over the same relations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from everview.language.program import Program
from everview.language.relations import Relation

__all__ = ["Evolution", "Shape", "definition", "definitions", "shape_of"]


class Shape(NamedTuple):
    """What sites must agree on to exchange a relation's rows: all that is declared of it."""

    terms: str
    """Kind, key, owner, and what makes it windowed."""
    columns: tuple[tuple[str, str, bool], ...]
    """Name, type, and whether NULL may occur."""

    def fits_into(self, wider: Shape) -> bool:
        """Whether a row of this shape is one of a wider shape, with NULLs at its end."""
        width = len(self.columns)
        more = wider.columns[width:]
        return (
            self.terms == wider.terms
            and self.columns == wider.columns[:width]
            and all(nullable for *_, nullable in more)
            and not (more and self.is_windowed)
        )

    @property
    def is_windowed(self) -> bool:
        """Whether late rows are kept beside it, with a column of their own at the end."""
        return "event time" in self.terms


def shape_of(relation: Relation) -> Shape:
    """The shape of a relation."""
    terms = [relation.semantics.value]
    if relation.key:
        terms.append(f"key {', '.join(relation.key)}")
    if relation.owner is not None:
        terms.append(f"owner {relation.owner}")
    if relation.partitioned:
        terms.append(f"partitioned by {', '.join(relation.partitioned)}")
    if relation.event_time is not None:
        sources = ", ".join(relation.sources)
        terms.append(f"event time {relation.event_time}, sources {sources}, lateness {relation.lateness}")
    return Shape("; ".join(terms), tuple((f.name, str(f.type), f.nullable) for f in relation.schema))


def definitions(program: Program) -> dict[str, str]:
    """View → a digest of what it says and of all that it is made from, down to the relations."""
    found: dict[str, str] = {}
    for name, view in program.views.items():  # each after those it reads
        below = [
            found[read] if read in found else repr(shape_of(program.relations[read])) for read in view.reads
        ]
        said = repr((view.plan, view.authority, view.reads, below))
        found[name] = hashlib.sha256(said.encode()).hexdigest()[:32]
    return found


def definition(program: Program, view: str) -> str:
    """The digest of one view."""
    return definitions(program)[view]


@dataclass(frozen=True)
class Evolution:
    """From one program to another: what stays, what comes, what goes, and what cannot be done."""

    old: Program
    new: Program

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """Relations that stay as they are."""
        return tuple(n for n in self._common if self._shapes(n)[0] == self._shapes(n)[1])

    @cached_property
    def widened(self) -> dict[str, tuple[str, ...]]:
        """Relation → the nullable columns that it gets."""
        found = {}
        for name in self._common:
            before, after = self._shapes(name)
            if before != after and before.fits_into(after):
                found[name] = tuple(column for column, *_ in after.columns[len(before.columns) :])
        return found

    @cached_property
    def added(self) -> tuple[str, ...]:
        """Relations that are new."""
        return tuple(name for name in self.new.relations if name not in self.old.relations)

    @cached_property
    def _definitions(self) -> tuple[dict[str, str], dict[str, str]]:
        return definitions(self.old), definitions(self.new)

    @cached_property
    def same_views(self) -> tuple[str, ...]:
        """Views that say what they said, over the same relations."""
        before, after = self._definitions
        return tuple(name for name in after if before.get(name) == after[name])

    @cached_property
    def new_views(self) -> tuple[str, ...]:
        """Views that are new."""
        return tuple(name for name in self.new.views if name not in self.old.views)

    @cached_property
    def changed_views(self) -> tuple[str, ...]:
        """Views that say something else, or are made from what has changed."""
        before, after = self._definitions
        return tuple(name for name in after if name in before and before[name] != after[name])

    @cached_property
    def dropped_views(self) -> tuple[str, ...]:
        """Views that the new program does not have."""
        return tuple(name for name in self.old.views if name not in self.new.views)

    @cached_property
    def refused(self) -> tuple[str, ...]:
        """What cannot be done safely: why, and what to do instead."""
        return tuple(self._refusals())

    @property
    def is_nothing(self) -> bool:
        """Whether both programs declare the same."""
        return self.old.hash == self.new.hash

    # Inside.

    @property
    def _common(self) -> list[str]:
        return [name for name in self.new.relations if name in self.old.relations]

    def _shapes(self, name: str) -> tuple[Shape, Shape]:
        return shape_of(self.old.relations[name]), shape_of(self.new.relations[name])

    def _refusals(self) -> Iterator[str]:
        for name in self.old.relations:
            if name in self.new.views:
                yield f"{name} is a relation, and would be a view: give the view another name"
            elif name not in self.new.relations and not name.startswith("everview_"):
                yield (
                    f"{name} would be dropped with its rows, which other sites may still write: leave it "
                    "declared (no view needs to read it), or export it and begin a new store"
                )
        for name in self.new.relations:
            if name in self.old.views:
                yield f"{name} is a view, and would be a relation: give the relation another name"
        for name in self._common:
            if name not in self.kept and name not in self.widened:
                yield from self._misfit(name)

    def _misfit(self, name: str) -> Iterator[str]:
        """Why a relation cannot become what is declared, and what to do."""
        before, after = self._shapes(name)
        if name.startswith("everview_"):
            return  # what goes with a windowed relation, of which the same is said
        anew = f"declare it under another name, copy the rows of {name} there, and leave {name} declared"
        if before.terms != after.terms:
            yield f"{name} is declared as {before.terms}, and would be {after.terms}: {anew}"
            return
        width = len(before.columns)
        if before.columns == after.columns[:width]:
            more = [column for column, *_ in after.columns[width:]]
            if before.is_windowed:
                yield f"{name} is windowed, and gets no more columns ({', '.join(more)}): {anew}"
                return
            for column, kind, nullable in after.columns[width:]:
                if not nullable:
                    yield (
                        f"{name}.{column} would be NOT NULL, and the rows there are have no value for it: "
                        f"declare it as {column} {kind}, without NOT NULL"
                    )
            return
        names = [column for column, *_ in after.columns]
        for place, (column, kind, nullable) in enumerate(before.columns):
            if column not in names:
                yield f"{name}.{column} would be dropped: leave it declared, or {anew}"
            elif names.index(column) != place:
                yield f"{name}.{column} would move: new columns stand behind all others, in the order so far"
                return
            elif after.columns[place] != (column, kind, nullable):
                said = "" if nullable else " NOT NULL"
                yield f"{name}.{column} is {kind}{said}, and would become another: {anew}"
