"""Rows that are too large for any message, and what is said of them.

None is written any more (`language.sizes`). But a store may hold one from before there was a limit, and what
a view makes of rows may be larger than they are. Nobody can be sent the rest of a cut without it, for who has
the rest would be taken to have it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.errors import SyncError
from everview.language.sizes import octets
from everview.planner.published import view_of
from everview.replication.messages import Section
from everview.replication.wire import LIMIT

__all__ = ["LARGEST_PAGE", "check_page"]

LARGEST_PAGE = LIMIT - LIMIT // 8
"""How many bytes of values a page may have; the rest is for its header, and for ids."""

_SHOWN = 40


def check_page(sections: Sequence[Section]) -> None:
    """Raise SyncError if a page is too large, and name its largest row by what is short of it."""
    sizes = {
        (at, place): sum(map(_size, row))
        for at, section in enumerate(sections)
        for place, row in enumerate(zip(*section.columns, strict=True))
    }
    if sum(sizes.values()) <= LARGEST_PAGE:
        return
    at, place = max(sizes, key=lambda one: sizes[one])
    shown = ", ".join(_shown(column[place]) for column in sections[at].columns)
    raise SyncError(
        f"a row of {view_of(sections[at].stream)} has {sizes[at, place]:,} bytes, and a message has room for "
        f"{LARGEST_PAGE:,}: ({shown}); delete it, or write a shorter one in its place, and sync again"
    )


def _size(cell: Any) -> int:
    return octets(cell) if isinstance(cell, str | bytes) else 8


def _shown(cell: Any) -> str:
    long = isinstance(cell, str | bytes) and len(cell) > _SHOWN
    return f"{cell[:_SHOWN]!r}…" if long else repr(cell)
