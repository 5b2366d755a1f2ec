"""Values as people see them, on a line: in tables on a terminal and in a notebook."""

from __future__ import annotations

from typing import Any

from everview.language.text_values import write_text

__all__ = ["shown"]


def shown(value: Any) -> str:
    """A value on one line, without control characters; NULL is said."""
    if value is None:
        return "NULL"
    text = write_text(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
