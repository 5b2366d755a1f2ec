"""Small pieces of HTML, without styles of their own: a notebook's theme, light or dark, decides.

Whatever comes from rows, names and programs is escaped here and nowhere else: the other modules hand over
plain texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["heading", "note", "table", "tree"]


def heading(text: str) -> str:
    """A line above a table."""
    return f"<p><strong>{escape(text)}</strong></p>"


def note(text: str) -> str:
    """A line below it."""
    return f"<p><small>{escape(text)}</small></p>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[bool] = ()) -> str:
    """Rows of texts below a header; `numbers` says which columns stand to the right."""
    sides = [" style='text-align:right'" if right else " style='text-align:left'" for right in numbers]
    sides += [" style='text-align:left'"] * (len(header) - len(sides))
    head = "".join(f"<th{side}>{escape(text)}</th>" for text, side in zip(header, sides, strict=True))
    body = (
        "".join(f"<td{side}>{escape(text)}</td>" for text, side in zip(row, sides, strict=True))
        for row in rows
    )
    lines = "".join(f"<tr>{line}</tr>" for line in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def tree(lines: Iterable[tuple[int, str]]) -> str:
    """Nested lists of (depth, text), the root at depth 0 and each line at most one deeper than the last."""
    parts, depth = [], -1
    for deep, text in lines:
        if deep > depth:
            parts.append("<ul>")
        else:
            parts.append("</li>" + "</ul></li>" * (depth - deep))
        parts.append(f"<li>{escape(text)}")
        depth = deep
    return "".join(parts) + "</li></ul>" * (depth + 1)
