"""Whether columns hold what the store would hold: every value in the one stored form of its type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.engines.sqlite.parts import PartColumn
from everview.errors import WireError
from everview.replication.wire.checks import wrong_in

__all__ = ["check_columns"]


def check_columns(
    stream: str, columns: Sequence[Sequence[Any]], wanted: Sequence[PartColumn], rows: int
) -> None:
    """Raise WireError unless these are the columns of so many rows."""
    if len(columns) != len(wanted):
        raise WireError(
            f"{stream} has {len(columns)} columns, and should have {len(wanted)}", where="section"
        )
    for number, (column, one) in enumerate(zip(columns, wanted, strict=True)):
        name = one.field.name if one.field else f"column {number}"
        if len(column) != rows:
            raise WireError(f"{stream}, {name}: {len(column)} values for {rows} rows", where="section")
        if (wrong := wrong_in(column, one)) is not None:
            raise WireError(f"{stream}, {name}: {wrong}", where="value")
