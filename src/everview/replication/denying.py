"""Denying: what the rights of a token keep a site from reading at a peer, and from writing there.

The listening side knows the rights, so it says which of the names that the sender of a message has said
itself are *withheld*; no other name, since the token may tell nothing of it. The dialling side knows what it
needs the names for, and what it has written, and says what of that was *denied*.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Withheld", "as_header", "of_header"]

LONGEST_HEADER = 2000
"""Servers in between bear no long headers. Of more names the last are left out."""


class Withheld(NamedTuple):
    """Relations and views that the sender of a message may not read here, and may not write."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def as_header(told: Withheld) -> str:
    """As a line of ASCII; empty if nothing is withheld."""
    reads, writes = list(told.reads), list(told.writes)
    while reads or writes:
        text = json.dumps({"read": reads, "write": writes})
        if len(text) <= LONGEST_HEADER:
            return text
        (reads if len(reads) > len(writes) else writes).pop()
    return ""


def of_header(text: str) -> Withheld:
    """Read it; whatever cannot be read withholds nothing."""
    try:
        found = json.loads(text)
        return Withheld(_names(found["read"]), _names(found["write"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Withheld()


def _names(found: Iterable[object]) -> tuple[str, ...]:
    return tuple(name for name in found if isinstance(name, str))
