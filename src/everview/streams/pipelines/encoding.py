"""Plain values as bytes: elements, keys and contributions, one encoding for each value.

MessagePack, maps in the order of their keys, and tuples, sets, fractions, decimals, dates, large numbers and
Z-sets as extensions of it. Equal bytes mean equal values, and bytes have an order: of two elements with one
key the greater bytes win, whoever came first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from everview.algebra.zset import ZSet
from everview.errors import DataError, StoreError

_TUPLE, _FRACTION, _SET, _DECIMAL, _INTEGER, _PAIRS, _ZSET, _DATE, _TIMESTAMP = range(1, 10)

_AS_IT_IS = frozenset({str, float, bool, type(None), bytes})

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def encode(value: Any) -> bytes:
    """Return the bytes of a plain value; DataError for what is none."""
    try:
        return _encoder.encode(_shaped(value))
    except (UnicodeEncodeError, RecursionError) as error:
        raise DataError(f"{value!r} cannot be stored: {error}", value=value) from None


def encode_json(value: Any) -> bytes:
    """Return the same bytes for a value that came out of JSON, without looking at its parts."""
    try:
        return _encoder.encode(value)
    except OverflowError:
        return encode(value)


def decode(content: bytes) -> Any:
    """Return the value of such bytes."""
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, ValueError) as error:
        raise StoreError(
            f"{len(content)} bytes are not a value of ours: {error}; restore the store from a backup"
        ) from None


def _shaped(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**63 else Ext(_INTEGER, str(value).encode())
    match value:
        case list():
            return [_shaped(part) for part in value]
        case tuple():
            return Ext(_TUPLE, _encoder.encode([_shaped(part) for part in value]))
        case ZSet():
            return Ext(_ZSET, _pairs(dict(value.items())))
        case Mapping():
            if all(type(key) is str for key in value):
                return {key: _shaped(part) for key, part in value.items()}
            return Ext(_PAIRS, _pairs(value))
        case frozenset() | set():
            return Ext(_SET, _encoder.encode(sorted(encode(part) for part in value)))
        case Fraction():
            return Ext(_FRACTION, str(value).encode())
        case Decimal():
            return Ext(_DECIMAL, str(value).encode())
        case datetime():
            return Ext(_TIMESTAMP, value.isoformat().encode())
        case date():
            return Ext(_DATE, value.isoformat().encode())
        case int() | str():  # of a subclass
            return _shaped(int(value) if isinstance(value, int) else str(value))
    raise DataError(
        f"{kind.__name__} {value!r} cannot be stored: elements, keys and contributions are plain values "
        "(None, bool, int, float, str, bytes, Decimal, date, datetime; lists, tuples, sets, dicts of them)",
        value=value,
        expected="a plain value",
    )


def _pairs(value: Mapping[Any, Any]) -> bytes:
    return _encoder.encode(sorted([encode(key), encode(part)] for key, part in value.items()))


def _extended(code: int, data: memoryview) -> Any:
    content = bytes(data)
    match code:
        case 1:
            return tuple(_decoder.decode(content))
        case 2:
            return Fraction(content.decode())
        case 3:
            return frozenset(decode(part) for part in _decoder.decode(content))
        case 4:
            return Decimal(content.decode())
        case 5:
            return int(content)
        case 6:
            return {decode(key): decode(part) for key, part in _decoder.decode(content)}
        case 7:
            return ZSet({decode(key): decode(part) for key, part in _decoder.decode(content)})
        case 8:
            return date.fromisoformat(content.decode())
        case 9:
            return datetime.fromisoformat(content.decode())
    raise ValueError(f"an unknown kind of value: {code}")


_decoder = msgspec.msgpack.Decoder(ext_hook=_extended)
