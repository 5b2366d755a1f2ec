"""A tuple's id: the same at every site and on every engine, computed from what the tuple says.

The id is the first 16 bytes of SHA-256 over:

- the relation's name,
- then, for every column that is not NULL, in the byte order of the columns' names: the column's name, one
  byte for its type, and its value.

Names and values are UTF-8 or bytes with their length before them, four bytes, big-endian. NULLs are left
out, so that adding a nullable column changes no id.

| type | byte | value |
|---|---|---|
| BOOLEAN | b | one byte, 0 or 1 |
| BIGINT | i | 8 bytes, two's complement, big-endian |
| DOUBLE | f | 8 bytes, IEEE 754, big-endian; one zero, and one NaN, 7ff8000000000000 |
| DECIMAL | n | its shortest plain decimal text: −12.5, 0, 1000 |
| TEXT | t | UTF-8 |
| BLOB | x | the bytes |
| DATE | d | days since 1970-01-01, 8 bytes, two's complement, big-endian |
| TIMESTAMP | s | microseconds since 1970-01-01 UTC, 8 bytes, two's complement, big-endian |
"""

from __future__ import annotations

import datetime as dt
import hashlib
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from everview.language.relations import Relation
from everview.language.types import Field, Kind

ID_BYTES = 16

_EPOCH_DAY = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def tuple_id(relation: Relation, row: Sequence[Any]) -> bytes:
    """Return the id of a row of a relation; values are in their one form (see `values`)."""
    digest = hashlib.sha256(_measured(relation.name.encode()))
    cells = sorted(zip(relation.schema, row, strict=True), key=lambda cell: cell[0].name.encode())
    for field, value in cells:
        if value is not None:
            tag, encode = _ENCODINGS[field.type.kind]
            digest.update(_measured(field.name.encode()) + tag + _measured(encode(value)))
    return digest.digest()[:ID_BYTES]


def cell_encoder(field: Field) -> tuple[bytes, Callable[[Any], bytes]]:
    """Return what stands before a column's value in the hash, but for the length, and what encodes it."""
    tag, encode = _ENCODINGS[field.type.kind]
    return _measured(field.name.encode()) + tag, encode


def _measured(part: bytes) -> bytes:
    return struct.pack(">I", len(part)) + part


def _double(value: float) -> bytes:
    return struct.pack(">d", value) if value == value else b"\x7f\xf8" + bytes(6)  # noqa: PLR0124  (NaN)


def _decimal(value: Decimal) -> bytes:
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return b"0" if text == "-0" else text.encode()


def _timestamp(value: dt.datetime) -> bytes:
    return struct.pack(">q", (value - _EPOCH) // dt.timedelta(microseconds=1))


_ENCODINGS: dict[Kind, tuple[bytes, Callable[[Any], bytes]]] = {
    Kind.BOOLEAN: (b"b", lambda value: bytes([value])),
    Kind.BIGINT: (b"i", lambda value: struct.pack(">q", value)),
    Kind.DOUBLE: (b"f", _double),
    Kind.DECIMAL: (b"n", _decimal),
    Kind.TEXT: (b"t", str.encode),
    Kind.BLOB: (b"x", bytes),
    Kind.DATE: (b"d", lambda value: struct.pack(">q", (value - _EPOCH_DAY).days)),
    Kind.TIMESTAMP: (b"s", _timestamp),
}
