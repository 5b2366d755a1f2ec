"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["code", "generated", "table"]


def generated(title: str, about: str) -> list[str]:
    """The beginning of a page that nobody edits."""
    note = "<!-- Written from the code by `make references`; edit that instead. -->"
    return [note, f"# {title}", "", about, ""]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; a | in a cell is escaped."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    cells = ([" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows)
    return [*lines, *("| " + " | ".join(row) + " |" for row in cells), ""]


def code(text: str) -> str:
    """A piece of code within a line."""
    return f"`{text}`" if text else ""
