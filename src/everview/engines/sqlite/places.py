"""Places: where a page ended among the rows of one version, in few bytes.

A place is the key of the last row. It goes to the reader and comes back with the next request, in the header
of a message, where nothing may be long. So a long cell is cut off, and a digest of the whole key stands
behind the cells. What is cut off sorts before the whole: to go on, rows are passed over from there up to the
one that has the digest. Should that one have grown meanwhile, it comes with a later version, and those that
were passed over come again, which does no harm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from everview.engines.sqlite.parts import Row
from everview.errors import WireError

__all__ = ["beyond", "is_place", "same_place", "told"]

LONGEST = 1024
"""So many characters, or bytes, of a cell travel."""

_DIGEST = 16

Find = Callable[[str, Row], Iterator[Row]]
"""Given a comparison, `>` or `>=`, and cells: the rows whose key compares so, in order. They end with it."""


def told(key: Row) -> Row:
    """Return a key as it travels."""
    cells = tuple(map(_cut_off, key))
    return key if cells == key else (*cells, _digest(key))


def is_place(place: Row, count: int) -> bool:
    """Whether it may be the place of a key of so many cells; it came back over the wire."""
    if len(place) == count + 1:
        return isinstance(place[-1], bytes) and len(place[-1]) == _DIGEST
    return len(place) == count


def same_place(place: Row, key: Row) -> bool:
    """Whether a place is that of a key."""
    return place[-1] == _digest(key) if len(place) > len(key) else place == key


def beyond(find: Find, place: Row, count: int) -> Iterator[Row]:
    """Return the rows of a version after a place; their keys have so many cells."""
    if not is_place(place, count):
        raise WireError("the place to go on from is malformed", where="request")
    if len(place) == count:
        return find(">", place)
    return _beyond_long(find, place[:-1], place[-1], count)


def _beyond_long(find: Find, cells: Row, digest: bytes, count: int) -> Iterator[Row]:
    first = next((at for at, cell in enumerate(cells) if _is_long(cell)), 0)
    rows = find(">=", cells)
    for row in rows:
        key = row[-count:]
        if key[:first] != cells[:first] or _cut_off(key[first]) != cells[first]:
            break
        if _digest(key) == digest:
            yield from rows
            return
    yield from find(">=", cells)


def _is_long(cell: Any) -> bool:
    return isinstance(cell, str | bytes) and len(cell) >= LONGEST


def _cut_off(cell: Any) -> Any:
    return cell[:LONGEST] if _is_long(cell) else cell


def _digest(key: Row) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST)
    for cell in key:
        data = cell if isinstance(cell, bytes) else str(cell).encode()
        found.update(f"{type(cell).__name__} {len(data)} ".encode())
        found.update(data)
    return found.digest()
