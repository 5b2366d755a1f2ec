"""What a server withholds, as a header of its answer."""

from __future__ import annotations

import json
from collections.abc import Iterable

from everview.replication.rights.denial import Withheld

__all__ = ["as_header", "of_header"]

LONGEST_HEADER = 2000
"""Servers in between bear no long headers. Of more names the last are left out."""


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
