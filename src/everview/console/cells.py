"""Cells: values as the page shows them and sends them back, all as text.

JavaScript's numbers are doubles, which a BIGINT does not fit into, so none is sent. NULL is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from everview.errors import DataError
from everview.language.plan import Schema
from everview.language.text_values import UnreadableError, misfit, read_text, write_text

__all__ = ["LONGEST", "cells_of", "row_of", "shortened"]

LONGEST = 2_000
"""Of a longer text only so much is sent; a row that has one cannot be asked about."""


def cells_of(row: Iterable[Any]) -> list[str | None]:
    """A row as texts."""
    return [None if value is None else write_text(value) for value in row]


def shortened(row: Iterable[Any]) -> tuple[list[str | None], bool]:
    """A row as texts of bounded length, and whether all of it is there."""
    cells = cells_of(row)
    whole = all(cell is None or len(cell) <= LONGEST for cell in cells)
    return cells if whole else [cell if cell is None else cell[:LONGEST] for cell in cells], whole


def row_of(name: str, schema: Schema, cells: object) -> tuple[Any, ...]:
    """A row from its texts; DataError says which does not fit."""
    if not isinstance(cells, Sequence) or isinstance(cells, str) or len(cells) != len(schema):
        raise DataError(f"a row of {name} is a list of {len(schema)} texts", relation=name)
    values = []
    for field, cell in zip(schema, cells, strict=True):
        if cell is not None and not isinstance(cell, str):
            raise DataError(f"{name}.{field.name} is given as a text, or null", relation=name)
        try:
            values.append(None if cell is None else read_text(cell, field.type))
        except UnreadableError as bad:
            raise misfit(name, field, bad) from None
    return tuple(values)
