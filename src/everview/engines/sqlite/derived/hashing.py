"""Ids of stored rows, many at a time, as two integers each."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from everview.engines.sqlite.scalars.storage import from_stored
from everview.language.identity import ID_BYTES, cell_encoder
from everview.language.relations import Relation

__all__ = ["Hasher"]

_LENGTH = struct.Struct(">I")


class Hasher:
    """Computes the ids of a relation's rows, or of their keys, from stored rows.

    They are those of `tuple_id`, with all that does not depend on the row done before.
    """

    def __init__(self, relation: Relation) -> None:
        self.positions: Sequence[int] = relation.key_positions or range(len(relation.schema))
        name = relation.name.encode()
        self._start = hashlib.sha256(_LENGTH.pack(len(name)) + name)
        fields = [(position, relation.schema[position]) for position in self.positions]
        fields.sort(key=lambda pair: pair[1].name.encode())
        self._cells = [(position, from_stored(f.type), *cell_encoder(f)) for position, f in fields]

    def ids(self, rows: Iterable[Sequence[Any]]) -> tuple[Sequence[int], Sequence[int]]:
        """Return the first integers of all rows' ids, and the second ones."""
        joined = b"".join(map(self._id, rows))
        integers = struct.unpack(f"<{len(joined) // 8}q", joined)
        return integers[0::2], integers[1::2]

    def _id(self, row: Sequence[Any]) -> bytes:
        parts = []
        for position, load, head, encode in self._cells:
            cell = row[position]
            if cell is not None:
                body = encode(cell if load is None else load(cell))
                parts.append(head + _LENGTH.pack(len(body)) + body)
        digest = self._start.copy()
        digest.update(b"".join(parts))
        return digest.digest()[:ID_BYTES]
