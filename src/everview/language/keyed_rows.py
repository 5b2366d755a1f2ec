"""What is deleted from a keyed relation: keys, or rows of which only the key counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.values import check_rows

__all__ = ["rows_by_key"]

Given = Mapping[str, Any] | Sequence[Any]


def rows_by_key(relation: Relation, rows: Iterable[Given]) -> list[tuple[Any, ...]]:
    """Return rows of which only the key counts; what was given may be keys, in the key's order, or rows."""
    fields = [replace(f, nullable=f.nullable or f.name not in relation.key) for f in relation.schema]
    return check_rows(relation.name, fields, [_whole(relation, row) for row in rows])


def _whole(relation: Relation, row: Given) -> Given:
    if isinstance(row, (Mapping, str, bytes)) or not hasattr(row, "__len__"):
        return row
    if len(row) == len(relation.schema):
        return row
    if len(row) == len(relation.key):
        return dict(zip(relation.key, row, strict=True))
    raise DataError(
        f"{relation.name} is deleted from by key ({', '.join(relation.key)}) or by whole rows, "
        f"and {row!r} is neither",
        relation=relation.name,
        value=row,
    )
