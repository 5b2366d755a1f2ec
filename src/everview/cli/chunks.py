"""A chunk: some thousand rows of a file, typed, that can say where each of them stands."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.text_values import UnreadableError
from everview.language.types import Field

__all__ = ["CHUNK", "Chunk", "Place", "cannot_hold", "to_rows", "unknown_column"]

CHUNK = 10_000
"""Rows that are read, checked and applied together."""

Place = Callable[[int], str]
"""Where the row of an index stands: "people.csv, line 3"."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows in the order of the relation's columns; `done` says how much of the file has been read."""

    rows: list[tuple[Any, ...]]
    place: Place
    done: int


def to_rows(relation: Relation, columns: dict[str, Sequence[Any]], length: int) -> list[tuple[Any, ...]]:
    """Whole rows from columns; a column that was not given is NULL."""
    nothing = (None,) * length
    return list(zip(*(columns.get(name, nothing) for name in relation.columns), strict=True))


def cannot_hold(relation: Relation, field: Field, place: Place, bad: UnreadableError) -> DataError:
    """The error for a text that is no value of a column's type."""
    return DataError(
        f"{place(bad.index)}: {relation.name}.{field.name} cannot hold {bad.text!r}: expected {bad.expected}",
        relation=relation.name,
        column=field.name,
        value=bad.text,
        expected=str(field.type),
    )


def unknown_column(relation: Relation, name: str, where: str) -> DataError:
    """The error for a name that no column has, with the nearest one that has."""
    near = difflib.get_close_matches(name.lower(), relation.columns, n=1)
    advice = f"did you mean {near[0]}?" if near else f"its columns are {', '.join(relation.columns)}"
    return DataError(
        f"{where}: {relation.name} has no column {name!r} ({advice})", relation=relation.name, column=name
    )
