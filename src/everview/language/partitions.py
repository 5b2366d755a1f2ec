"""Partitions: the values of a relation's PARTITION BY columns, and which of them a site chooses.

A value is known by a text: a JSON list of the cells, as they are stored. A *choice* is such a text in which
`{}` stands for any value of a column. So few choices name many values, and one is looked up, not searched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.types import Field, Kind

__all__ = ["ANY", "Choices", "cells_of", "covers", "includes", "is_text", "meet", "text_of", "texts_of"]

Choices = frozenset[str]

WIDEST = 1000
"""How many characters the text of a value has at most."""

ANY: dict[str, Any] = {}
"""What stands in a choice for any value of a column."""


def text_of(cells: Iterable[Any]) -> str:
    """Return the text of stored cells."""
    plain = [int(cell) if isinstance(cell, bool) else cell for cell in cells]
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def texts_of(relation: Relation, rows: Sequence[Sequence[Any]]) -> dict[str, list[Sequence[Any]]]:
    """Return stored rows by the text of their partition."""
    places = relation.partition_positions
    found: dict[tuple[Any, ...], list[Sequence[Any]]] = {}
    for row in rows:
        found.setdefault(tuple([row[place] for place in places]), []).append(row)
    texts = {}
    for cells, some in found.items():
        text = text_of(cells)
        if len(text) > WIDEST:
            raise DataError(
                f"{relation.name}: a value of {', '.join(relation.partitioned)} is longer than a "
                f"partition's may be ({WIDEST} characters)",
                relation=relation.name,
                column=relation.partitioned[0],
            )
        texts[text] = some
    return texts


def is_text(relation: Relation, text: str) -> bool:
    """Whether this is the text of a value, as everybody writes it; one value has no second text."""
    if not relation.partitioned or len(text) > WIDEST:
        return text == ""
    try:
        cells = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(cells, list) or len(cells) != len(relation.partitioned):
        return False
    fields = map(relation.field, relation.partitioned)
    return all(map(_is_cell, cells, fields)) and text_of(cells) == text


def _is_cell(cell: Any, field: Field) -> bool:
    if cell is None:
        return field.nullable
    if field.type.kind is Kind.BOOLEAN:
        return type(cell) is int and cell in (0, 1)
    if field.type.kind is Kind.DECIMAL:
        return type(cell) in (int, str)
    return type(cell) is (str if field.type.kind is Kind.TEXT else int)


def cells_of(text: str) -> list[Any]:
    """Return the stored cells of a value."""
    cells: list[Any] = json.loads(text)
    return cells


def covers(choices: Choices | None, text: str) -> bool:
    """Whether a value is chosen; without choices all are."""
    if choices is None or text in choices:
        return True
    if not any("{}" in choice for choice in choices):
        return False
    cells = json.loads(text)
    patterns = product(*((cell, ANY) for cell in cells))
    return any(text_of(pattern) in choices for pattern in patterns)


def meet(one: Choices | None, other: Choices | None) -> Choices | None:
    """Return choices of the values that two choices both name; None where both name all."""
    if one is None or other is None:
        return other if one is None else one
    both = [choice for choice in one if covers(other, choice)]
    return frozenset([*both, *(choice for choice in other if covers(one, choice))])


def includes(choices: Choices | None, more: Choices | None) -> bool:
    """Whether some choices name all that others do."""
    if choices is None:
        return True
    return more is not None and all(covers(choices, choice) for choice in more)
