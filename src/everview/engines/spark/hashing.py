"""The hash by which kept rows are found: Spark's `xxhash64`, and the same over Arrow columns.

Executors compute it in SQL, the driver over the few rows that it holds; both must agree, value by value.
Columns are hashed one after the other, each with the hash so far as its seed; NULL leaves it as it is. A hash
only finds candidates: whoever looks up compares the values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from everview.language.types import Field, Kind, Type
from everview.language.values import EXACT

__all__ = ["SEED", "Hashes", "double_bits", "hash_columns", "hash_text"]

Hashes = NDArray[np.int64]

SEED = 42
"""What Spark's `xxhash64` starts from."""

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_SHORT_DIGITS = 18
"""Up to so many digits a DECIMAL is hashed as the BIGINT of its units."""


def hash_text(columns: Sequence[str]) -> str:
    """The hash of these columns in Spark SQL."""
    return f"xxhash64({', '.join(columns)})" if columns else f"{SEED}L"


def hash_columns(columns: Sequence[pa.ChunkedArray], fields: Sequence[Field], rows: int) -> Hashes:
    """The hash of the same columns in Arrow."""
    seeds = np.full(rows, SEED, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column, field in zip(columns, fields, strict=True):
            array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if array.null_count == rows:
                continue
            hashed = _hashed(array, field.type, seeds)
            if array.null_count:
                seeds = np.where(array.is_valid().to_numpy(zero_copy_only=False), hashed, seeds)
            else:
                seeds = hashed
    return seeds.view(np.int64)


def _hashed(array: pa.Array, kind: Type, seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    match kind.kind:
        case Kind.BIGINT:
            return _longs(_filled(array, pa.int64(), 0), seeds)
        case Kind.TIMESTAMP:
            return _longs(_filled(array.cast(pa.timestamp("us")).view(pa.int64()), pa.int64(), 0), seeds)
        case Kind.DOUBLE:
            return _longs(double_bits(array), seeds)
        case Kind.BOOLEAN:
            return _ints(_filled(array.cast(pa.int32()), pa.int32(), 0), seeds)
        case Kind.DATE:
            return _ints(_filled(array.view(pa.int32()), pa.int32(), 0), seeds)
        case Kind.TEXT | Kind.BLOB:
            return _bytes(array.cast(pa.large_binary()).to_pylist(), seeds)
        case Kind.DECIMAL:
            return _decimals(array, kind, seeds)
        case Kind.UNKNOWN:
            raise ValueError("a column has a known type")
        case _:
            assert_never(kind.kind)


def _filled(array: pa.Array, kind: pa.DataType, value: int) -> NDArray[np.int64]:
    given: NDArray[np.int64] = array.fill_null(pa.scalar(value, kind)).to_numpy(zero_copy_only=False)
    return given


def double_bits(array: pa.Array) -> NDArray[np.int64]:
    """As Java has them: one zero, one NaN."""
    values = array.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    return np.where(np.isnan(values), np.float64("nan"), values).view(np.int64)


def _rotated(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _mixed(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


def _longs(values: NDArray[np.int64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = seeds + _P5 + np.uint64(8)
    hashes = hashes ^ (_rotated(values.view(np.uint64) * _P2, 31) * _P1)
    return _mixed(_rotated(hashes, 27) * _P1 + _P4)


def _ints(values: NDArray[np.int64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    unsigned = values.astype(np.int32).view(np.uint32).astype(np.uint64)
    hashes = (seeds + _P5 + np.uint64(4)) ^ (unsigned * _P1)
    return _mixed(_rotated(hashes, 23) * _P2 + _P3)


def _bytes(values: Sequence[bytes | None], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    digest = xxhash.xxh64_intdigest
    pairs = zip(values, seeds.tolist(), strict=True)
    found = (digest(value, seed) if value is not None else seed for value, seed in pairs)
    return np.fromiter(found, dtype=np.uint64, count=len(values))


def _decimals(array: pa.Array, kind: Type, seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    whole, scale = kind.digits
    if whole + scale <= _SHORT_DIGITS:
        # The units are the lower half of Arrow's 16 bytes, little end first.
        buffer = pc.fill_null(array, pa.scalar(0, array.type)).cast(array.type).buffers()[1]
        halves = np.frombuffer(buffer, dtype=np.int64)
        return _longs(np.ascontiguousarray(halves[0 : 2 * len(array) : 2]), seeds)
    units = (None if value is None else int(EXACT.scaleb(value, scale)) for value in array.to_pylist())
    return _bytes([None if unit is None else _big_endian(unit) for unit in units], seeds)


def _big_endian(unit: int) -> bytes:
    """The fewest bytes that hold it with its sign, as Java's BigInteger gives them."""
    length = (unit if unit >= 0 else ~unit).bit_length() // 8 + 1
    return unit.to_bytes(length, "big", signed=True)
