"""Ids of stored rows, many at a time."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from everview.engines.sqlite.scalars.storage import from_stored
from everview.language.identity import ID_BYTES, cell_encoder
from everview.language.relations import Relation

Hasher = Callable[[Sequence[Any]], bytes]
"""Stored row → id."""


def row_hasher(relation: Relation) -> Hasher:
    """Return what computes the ids of a relation's stored rows."""
    return _hasher(relation, range(len(relation.schema)))


def key_hasher(relation: Relation) -> Hasher:
    """Return what computes the ids of the keys of a keyed relation's stored rows."""
    return _hasher(relation, relation.key_positions)


def _hasher(relation: Relation, positions: Iterable[int]) -> Hasher:
    """The same as `tuple_id` of the loaded row, with all that does not depend on the row done before."""
    name = relation.name.encode()
    start = hashlib.sha256(struct.pack(">I", len(name)) + name)
    fields = [(position, relation.schema[position]) for position in positions]
    fields.sort(key=lambda pair: pair[1].name.encode())
    cells = [(position, from_stored(f.type), *cell_encoder(f)) for position, f in fields]

    def hashed(row: Sequence[Any]) -> bytes:
        parts = []
        for position, load, head, encode in cells:
            cell = row[position]
            if cell is not None:
                body = encode(cell if load is None else load(cell))
                parts.append(head + struct.pack(">I", len(body)) + body)
        digest = start.copy()
        digest.update(b"".join(parts))
        return digest.digest()[:ID_BYTES]

    return hashed
