"""Rows for people: a table on a terminal, aligned columns of plain text elsewhere.

Numbers stand to the right. NULL is said, and what would move the cursor is shown as an escape.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from everview.language.text_values import write_text
from everview.language.types import Field, Kind

__all__ = ["print_rows", "shown"]

Row = Sequence[Any]

_TABLE_ROWS = 2_000
"""More rows than this are plain on a terminal too: nobody admires them, and a table takes its time."""

_NUMBERS = (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL)


def shown(value: Any) -> str:
    """A value on one line, without control characters."""
    if value is None:
        return "NULL"
    text = write_text(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def print_rows(schema: Sequence[Field], rows: Sequence[Row]) -> None:
    """Print rows; below a table on a terminal, how many they are."""
    if sys.stdout.isatty() and len(rows) <= _TABLE_ROWS:
        _print_table(schema, rows)
    else:
        _print_plain(schema, rows)


def _print_table(schema: Sequence[Field], rows: Sequence[Row]) -> None:
    from rich import box  # noqa: PLC0415 - output that no person looks at does without
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", pad_edge=False, show_edge=False)
    for field in schema:
        right = field.type.kind in _NUMBERS
        table.add_column(Text(field.name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("NULL", style="dim") if value is None else Text(shown(value)) for value in row))
    console = Console()
    console.print(table)
    console.print(f"({len(rows):,} row{'' if len(rows) == 1 else 's'})", style="dim", highlight=False)


def _print_plain(schema: Sequence[Field], rows: Sequence[Row]) -> None:
    from rich.cells import cell_len  # noqa: PLC0415

    columns = [[field.name, *(shown(row[i]) for row in rows)] for i, field in enumerate(schema)]
    padded = []
    for field, column in zip(schema, columns, strict=True):
        widths = [cell_len(text) for text in column]
        widest = max(widths)
        if field.type.kind in _NUMBERS:
            padded.append([" " * (widest - w) + text for text, w in zip(column, widths, strict=True)])
        else:
            padded.append([text + " " * (widest - w) for text, w in zip(column, widths, strict=True)])
    lines = ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]
    sys.stdout.write("\n".join(lines) + "\n")
