"""The rank of a row among those of its key, as one column that compares as the sort keys do.

One key of fixed width becomes a BIGINT, anything else bytes: for every key a byte that places NULL, then the
value so that bytes compare as values do; turned around where the order descends. NaN is the greatest DOUBLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["Rank", "ranks"]

_SIGN = np.int64(-(2**63))


@dataclass(frozen=True, slots=True)
class Rank:
    """A column to rank by."""

    column: int
    descending: bool
    nulls_first: bool


def ranks(columns: Sequence[pa.Array], order: Sequence[Rank], *, nulls: bool) -> pa.Array:
    """The rank of each row; `columns` are those that `order` names; `nulls` says that NULLs may come."""
    if len(order) == 1 and not nulls and _is_fixed(columns[0].type):
        return pa.array(_turned(_whole(columns[0]), order[0]))
    parts: list[pa.Array] = []
    for column, key in zip(columns, order, strict=True):
        parts += _parts(column, key)
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_boolean(kind)
    )


def _whole(column: pa.Array) -> NDArray[np.int64]:
    """Whole numbers in the order of the values."""
    if pa.types.is_floating(column.type):
        values = column.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        bits = np.where(np.isnan(values), np.float64("nan"), values).view(np.int64)
        # Of negative numbers the greater bits are the lesser value.
        return np.where(bits < 0, ~bits | _SIGN, bits)
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    given: NDArray[np.int64] = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return given


def _turned(values: NDArray[np.int64], key: Rank) -> NDArray[np.int64]:
    return ~values if key.descending else values


def _parts(column: pa.Array, key: Rank) -> list[pa.Array]:
    """A byte that says where NULLs stand, and the bytes of the value."""
    missing = column.is_null().to_numpy(zero_copy_only=False)
    null, there = (b"\x00" if key.nulls_first else b"\x02"), b"\x01"
    marks = pc.if_else(column.is_null(), pa.scalar(null, pa.binary()), pa.scalar(there, pa.binary()))
    if _is_fixed(column.type):
        unsigned = (_turned(_whole(column), key) ^ _SIGN).astype(">i8")
        body = _fixed(unsigned.tobytes(), 8, len(column))
    elif pa.types.is_decimal(column.type):
        body = _fixed(_decimal_bytes(column, key), 16, len(column))
    else:
        body = _escaped(column.cast(pa.binary()).fill_null(b""), key)
    return [marks, pc.if_else(pa.array(missing), pa.scalar(b"", pa.binary()), body)]


def _fixed(content: bytes, width: int, rows: int) -> pa.Array:
    array = pa.Array.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(content)])
    return array.cast(pa.binary())


def _decimal_bytes(column: pa.Array, key: Rank) -> bytes:
    """Big end first, the sign turned so that it compares."""
    filled = column.fill_null(pa.scalar(0, column.type)) if column.null_count else column
    buffer = filled.buffers()[1]
    start = filled.offset * 16
    raw = (
        np.frombuffer(buffer, dtype=np.uint8)[start : start + 16 * len(filled)]
        .reshape(-1, 16)[:, ::-1]
        .copy()
    )
    raw[:, 0] ^= 0x80
    if key.descending:
        raw = ~raw
    return raw.tobytes()


def _escaped(column: pa.Array, key: Rank) -> pa.Array:
    """Bytes with an end that is less than any other byte: 00 becomes 00 01, the end is 00 00."""
    text = pc.replace_substring(column, b"\x00", b"\x00\x01")
    ended = pc.binary_join_element_wise(
        text, pa.scalar(b"\x00\x00", pa.binary()), pa.scalar(b"", pa.binary())
    )
    if not key.descending:
        return ended
    _, offsets, values = ended.buffers()
    turned = (
        pa.py_buffer((~np.frombuffer(values, dtype=np.uint8)).tobytes()) if values is not None else values
    )
    return pa.Array.from_buffers(pa.binary(), len(ended), [None, offsets, turned], offset=ended.offset)
