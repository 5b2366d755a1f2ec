"""Canonical bytes: equal values have equal bytes, on every machine and in every run.

A window's entry is written once, and two entries are the same when their bytes are. So the bytes must not
depend on the order in which a map or a set was filled, and they must tell 1 from 1.0 and from True.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from everview.algebra.crdt.contributions import Entry
from everview.algebra.zset import ZSet
from everview.errors import DataError
from everview.streams.windows.records import RowChange

__all__ = ["CANONICAL", "Canonical", "Codec"]

_LEAST, _MOST = -(2**63), 2**64 - 1


class Codec(Protocol):
    """How local states become bytes, and are read again.

    - equal states have equal bytes, whatever made them
    - decode(encode(s)) = s
    """

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value."""
        ...

    def decode(self, data: bytes) -> Any:
        """Return the value of some bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Canonical(Codec):
    """MessagePack of plain values; what MessagePack does not know is a list with a tag in front.

    Known are None, bool, int, float, str, bytes, Decimal, Fraction, date, datetime, tuples, lists, maps,
    frozen sets, Z-sets, changes of rows, and what a CRDT keeps of a source. Maps and sets are in the order
    of their bytes.
    """

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value; DataError for one that has none."""
        return msgspec.msgpack.encode(_tagged(value))

    def decode(self, data: bytes) -> Any:
        """Return the value of some bytes."""
        try:
            return _untagged(msgspec.msgpack.decode(data))
        except (msgspec.DecodeError, ValueError, TypeError, IndexError) as error:
            raise DataError(f"these {len(data)} bytes are no value: {error}", value=data) from None


CANONICAL = Canonical()


def _tagged(value: Any) -> Any:
    match value:
        case None | bool() | float() | str() | bytes():
            return value
        case int():
            return value if _LEAST <= value <= _MOST else ["i", str(value)]
        case RowChange():
            return ["c", _tagged(value.row), value.weight]
        case tuple():
            return ["t", *map(_tagged, value)]
        case list():
            return ["l", *map(_tagged, value)]
        case ZSet():
            return ["z", *_pairs(dict(value.items()))]
        case Mapping():
            return ["m", *_pairs(value)]
        case frozenset():
            return ["s", *sorted(map(_tagged, value), key=msgspec.msgpack.encode)]
        case Decimal():
            return ["d", str(value)]
        case Fraction():
            return ["f", str(value)]
        case dt.datetime():
            return ["T", value.isoformat()]
        case dt.date():
            return ["D", value.isoformat()]
        case Entry():
            return ["e", _tagged(value.count), _tagged(value.total), _tagged(value.ahead)]
    raise DataError(
        f"a {type(value).__name__} has no canonical bytes; use plain values, or give the group a codec",
        value=value,
        expected="a plain value",
    )


def _pairs(value: Mapping[Any, Any]) -> list[Any]:
    pairs = [[_tagged(key), _tagged(item)] for key, item in value.items()]
    return sorted(pairs, key=lambda pair: msgspec.msgpack.encode(pair[0]))


def _untagged(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    tag, *rest = value
    match tag:
        case "i":
            return int(rest[0])
        case "t":
            return tuple(map(_untagged, rest))
        case "c":
            return RowChange(_untagged(rest[0]), rest[1])
        case "l":
            return list(map(_untagged, rest))
        case "z":
            return ZSet({_untagged(key): _untagged(item) for key, item in rest})
        case "m":
            return MappingProxyType({_untagged(key): _untagged(item) for key, item in rest})
        case "s":
            return frozenset(map(_untagged, rest))
        case "d":
            return Decimal(rest[0])
        case "f":
            return Fraction(rest[0])
        case "T":
            return dt.datetime.fromisoformat(rest[0])
        case "D":
            return dt.date.fromisoformat(rest[0])
        case "e":
            count, total, ahead = rest
            return Entry(_untagged(count), _untagged(total), _untagged(ahead))
    raise ValueError(f"there is no tag {tag!r}")
