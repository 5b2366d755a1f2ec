"""The ids of tuples (see `language.identity`) over Arrow columns.

What is hashed is put together column by column; only SHA-256 itself is called row by row.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from everview.engines.spark.hashing import double_bits
from everview.language.identity import ID_BYTES, cell_encoder
from everview.language.relations import Relation
from everview.language.types import Field, Kind

__all__ = ["tuple_ids"]

Bytes = NDArray[np.uint8]

_AT_ONCE = 8_192
"""Rows whose messages are made at once: so many stay in the processor's caches until they are hashed."""

_WHOLE = {Kind.BIGINT, Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP}


def tuple_ids(relation: Relation, columns: Sequence[pa.ChunkedArray], rows: int) -> NDArray[np.void]:
    """The id of each row, 16 bytes."""
    name = relation.name.encode()
    start = struct.pack(">I", len(name)) + name
    cells = sorted(zip(relation.schema, columns, strict=True), key=lambda cell: cell[0].name.encode())
    arrays = [(field, _one(column)) for field, column in cells]
    even = all(field.type.kind in _WHOLE and not array.null_count for field, array in arrays)
    sha256, found = hashlib.sha256, np.empty((rows, ID_BYTES), dtype=np.uint8)
    for first in range(0, rows, _AT_ONCE):
        some = min(_AT_ONCE, rows - first)
        sliced = [(field, array.slice(first, some)) for field, array in arrays]
        messages = _even(start, sliced, some) if even else _uneven(start, sliced, some)
        digests = b"".join([sha256(message).digest() for message in messages])
        found[first : first + some] = np.frombuffer(digests, dtype=np.uint8).reshape(some, 32)[:, :ID_BYTES]
    return found.view(f"V{ID_BYTES}").reshape(rows)


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _even(start: bytes, arrays: Sequence[tuple[Field, pa.Array]], rows: int) -> list[bytes]:
    """Messages of one length: all begin as the same bytes, into which the values are written."""
    message, places = start, []
    for field, _ in arrays:
        before, _ = cell_encoder(field)
        places.append(len(message) + len(before) + 4)
        message += before + struct.pack(">I", 8) + bytes(8)
    cells = np.dtype(
        {
            "names": [str(place) for place in places],
            "formats": [">i8"] * len(places),
            "offsets": places,
            "itemsize": len(message),
        }
    )
    messages = np.frombuffer(bytearray(message) * rows, dtype=cells)
    for place, (field, array) in zip(places, arrays, strict=True):
        messages[str(place)] = _whole(field, array)
    found: list[bytes] = messages.view(f"V{len(message)}").tolist()
    return found


def _big_endian(field: Field, array: pa.Array) -> Bytes:
    """Eight bytes a value; NULLs as anything."""
    return _whole(field, array).astype(">i8").view(np.uint8).reshape(len(array), 8)


def _whole(field: Field, array: pa.Array) -> NDArray[Any]:
    """Values as whole numbers; NULLs as anything."""
    match field.type.kind:
        case Kind.DOUBLE:
            values: NDArray[Any] = double_bits(array)
        case Kind.DATE:
            values = array.view(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        case Kind.TIMESTAMP:
            values = (
                array.cast(pa.timestamp("us")).view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            )
        case _:
            values = array.fill_null(0).to_numpy(zero_copy_only=False)
    return values


def _uneven(start: bytes, arrays: Sequence[tuple[Field, pa.Array]], rows: int) -> list[bytes]:
    """Messages of any length, in one buffer; the cell of a NULL is empty."""
    pieces: list[Any] = [pa.repeat(pa.scalar(start, pa.large_binary()), rows)]
    for field, array in arrays:
        before, encode = cell_encoder(field)
        value = _encoded(field, array, encode)
        lengths = pc.binary_length(value).fill_null(0).to_numpy(zero_copy_only=False)
        measured = _fixed(lengths.astype(">u4").view(np.uint8).reshape(rows, 4))
        head = pc.if_else(
            array.is_valid(), pa.scalar(before, pa.large_binary()), pa.scalar(b"", pa.large_binary())
        )
        measured = pc.if_else(array.is_valid(), measured, pa.scalar(b"", pa.large_binary()))
        pieces += [head, measured, value.fill_null(b"")]
    joined = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))
    _, offsets, data = joined.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[joined.offset : joined.offset + rows + 1].tolist()
    # Slices of bytes are copies, and still made in half the time that views of them take.
    whole = data.to_pybytes() if data is not None else b""
    return [whole[a:b] for a, b in itertools.pairwise(ends)]


def _fixed(cells: Bytes) -> pa.Array:
    rows, width = cells.shape
    buffer = pa.py_buffer(np.ascontiguousarray(cells))
    return pa.Array.from_buffers(pa.binary(width), rows, [None, buffer]).cast(pa.large_binary())


def _encoded(field: Field, array: pa.Array, encode: Any) -> pa.Array:
    """The bytes of each value; NULL for NULL."""
    kind = field.type.kind
    if kind in _WHOLE:
        return pc.if_else(
            array.is_valid(), _fixed(_big_endian(field, array)), pa.scalar(None, pa.large_binary())
        )
    if kind is Kind.BOOLEAN:
        one, zero = pa.scalar(b"\x01", pa.large_binary()), pa.scalar(b"\x00", pa.large_binary())
        return pc.if_else(array, one, zero)
    if kind in (Kind.TEXT, Kind.BLOB):
        return array.cast(pa.large_binary())
    given = (None if value is None else encode(value) for value in array.to_pylist())
    return pa.array(list(given), pa.large_binary())
