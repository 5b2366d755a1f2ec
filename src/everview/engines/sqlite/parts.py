"""The columns in which rows travel, and what the values in each may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everview.language.types import Field

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PartColumn:
    """A column on the wire: values of a field's type as they are stored, or counts."""

    field: Field | None = None


COUNT = PartColumn()
"""An integer that is not negative: a causal length, a stamp."""


def value(field: Field) -> PartColumn:
    """Return the column of a field's stored values."""
    return PartColumn(field)
