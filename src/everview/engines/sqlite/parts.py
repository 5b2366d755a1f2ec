"""The columns in which rows travel, and what the values in each may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everview.language.types import Field

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PartColumn:
    """A column on the wire: a value of a field's type as it is stored, or one of the words below.

    `site` is a number from the store's table of sites; `count` is an integer that
    is not negative; `integer` any integer; `id` is 16 bytes.
    """

    word: str
    field: Field | None = None


SITE = PartColumn("site")
COUNT = PartColumn("count")
INTEGER = PartColumn("integer")
ID = PartColumn("id")


def value(field: Field) -> PartColumn:
    """Return the column of a field's stored values."""
    return PartColumn("value", field)
