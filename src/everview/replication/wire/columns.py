"""Columns of any stored values: each becomes bytes in the way that suits it.

What a column holds decides: integers lie in planes, doubles as the integers of their bits, text and blobs
end to end. Values that repeat are told once and then named, and a column of several kinds (or with NULLs) is
taken apart into one column for each.

Everything is done for whole columns by functions of the interpreter; Python itself never looks at a cell.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, repeat
from operator import is_
from typing import Any

from everview.engines.sqlite.integers import within
from everview.errors import WireError
from everview.replication.wire.codes import Code
from everview.replication.wire.integers import pack, unpack

__all__ = ["decode_column", "encode_column"]

_LENGTH = struct.Struct("<I")
_PARTS = struct.Struct("<BII")
_DEPTH = 3
"""A mixed column may hold a dictionary, and a dictionary plain columns; nothing goes deeper."""

_KINDS = 5
"""NULL, and the four kinds of values that a store has."""

Column = Sequence[Any]


def encode_column(column: Column) -> bytes:
    """Return the bytes of a column."""
    kinds = set(map(type, column))
    if len(kinds) > 1 or kinds == {type(None)}:
        return _encode_mixed(column)
    (kind,) = kinds or {int}
    if kind is int:
        return _encode_integers(column)
    if kind is float:
        return _encode_doubles(column)
    if kind is str:
        return _encode_repeating(column, _encode_texts)
    if kind is bytes:
        return _encode_repeating(column, _encode_blobs)
    raise WireError(f"a column holds a value of type {kind.__name__}, which no store has", where="column")


def _encode_mixed(column: Column) -> bytes:
    kinds = list(map(type, column))
    order = dict(zip(dict.fromkeys([type(None), *kinds]), range(len(kinds) + 1), strict=False))
    parts = [pack(list(map(order.__getitem__, kinds)))]
    parts += [encode_column(list(compress(column, map(is_, kinds, repeat(kind))))) for kind in [*order][1:]]
    return bytes([Code.MIXED]) + b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def _encode_integers(column: Column) -> bytes:
    plain = pack(column)
    if len(plain) <= 2 * len(column):
        return plain  # a byte a number, which no dictionary betters
    return min(plain, _named(column, pack) or plain, key=len)


def _encode_doubles(column: Column) -> bytes:
    count = len(column)
    bits = struct.unpack(f"<{count}q", struct.pack(f"<{count}d", *column))
    return _named(bits, _encode_bits) or _encode_bits(bits)


def _encode_bits(bits: Sequence[int]) -> bytes:
    return bytes([Code.DOUBLES]) + pack(bits)


def _encode_repeating(column: Column, plain: Callable[[Column], bytes]) -> bytes:
    return _named(column, plain) or plain(column)


def _named(column: Column, plain: Callable[[Column], bytes]) -> bytes | None:
    """The column as a dictionary, in the order of first appearance, if each value comes twice on average."""
    distinct = dict.fromkeys(column)
    if len(distinct) * 2 > len(column):
        return None
    values = plain(list(distinct))
    places = dict(zip(distinct, range(len(distinct)), strict=True))
    return (
        _PARTS.pack(Code.DICTIONARY, len(distinct), len(values))
        + values
        + pack(list(map(places.__getitem__, column)))
    )


def _encode_texts(column: Column) -> bytes:
    lengths = pack(list(map(len, column)))
    try:
        joined = "".join(column).encode()
    except UnicodeEncodeError as error:
        raise WireError("a text has lone surrogates, which UTF-8 cannot hold", where="column") from error
    return bytes([Code.TEXTS]) + _LENGTH.pack(len(lengths)) + lengths + joined


def _encode_blobs(column: Column) -> bytes:
    lengths = pack(list(map(len, column)))
    return bytes([Code.BLOBS]) + _LENGTH.pack(len(lengths)) + lengths + b"".join(column)


def decode_column(data: memoryview, count: int, depth: int = 1) -> Column:
    """Return the `count` values of a column; WireError if the bytes are not one."""
    if not data:
        raise WireError("a column is empty", where="column")
    if depth > _DEPTH:
        raise WireError("a column is nested too deeply", where="column")
    rest = data[1:]
    match data[0]:
        case Code.INTEGERS | Code.DELTAS | Code.RUNS:
            return unpack(data, count)
        case Code.DOUBLES:
            return list(struct.unpack(f"<{count}d", struct.pack(f"<{count}q", *unpack(rest, count))))
        case Code.TEXTS:
            return _decode_texts(rest, count)
        case Code.BLOBS:
            return _decode_blobs(rest, count)
        case Code.DICTIONARY:
            return _decode_dictionary(data, count, depth)
        case Code.MIXED:
            return _decode_mixed(rest, count, depth)
        case code:
            raise WireError(f"a column has the unknown code {code}", where="column")


def _split(data: memoryview) -> tuple[memoryview, memoryview]:
    """What a length says, and what follows it."""
    if len(data) < _LENGTH.size:
        raise WireError("a column ends within a length", where="column")
    (size,) = _LENGTH.unpack_from(data)
    if size > len(data) - _LENGTH.size:
        raise WireError("a length in a column reaches beyond its end", where="column")
    return data[_LENGTH.size : _LENGTH.size + size], data[_LENGTH.size + size :]


def _slices(data: memoryview, count: int) -> tuple[map[slice], int, memoryview]:
    """Where `count` values lie in what follows their lengths, and where the last one ends."""
    measured, rest = _split(data)
    lengths = unpack(measured, count)
    if min(lengths, default=0) < 0:
        raise WireError("a value in a column has a negative length", where="column")
    ends = list(accumulate(lengths, initial=0))
    return map(slice, ends, ends[1:]), ends[-1], rest


def _decode_texts(data: memoryview, count: int) -> list[str]:
    slices, end, rest = _slices(data, count)
    try:
        joined = str(rest, "utf-8")
    except UnicodeDecodeError as error:
        raise WireError("a text is not valid UTF-8", where="column") from error
    if end != len(joined):
        raise WireError("the texts of a column are not as long as it says", where="column")
    return list(map(joined.__getitem__, slices))


def _decode_blobs(data: memoryview, count: int) -> list[bytes]:
    slices, end, rest = _slices(data, count)
    if end != len(rest):
        raise WireError("the blobs of a column are not as long as it says", where="column")
    return list(map(bytes(rest).__getitem__, slices))


def _decode_dictionary(data: memoryview, count: int, depth: int) -> list[Any]:
    if len(data) < _PARTS.size:
        raise WireError("a dictionary ends within its first fields", where="column")
    _, distinct, size = _PARTS.unpack_from(data)
    rest = data[_PARTS.size :]
    if distinct > count or size > len(rest):
        raise WireError("a dictionary is larger than its column", where="column")
    values = decode_column(rest[:size], distinct, depth + 1)
    return _pick(values, unpack(rest[size:], count))


def _decode_mixed(data: memoryview, count: int, depth: int) -> list[Any]:
    if depth > 1:
        raise WireError("a mixed column lies within another column", where="column")
    part, rest = _split(data)
    kinds = unpack(part, count)
    sources: list[Iterator[Any]] = [repeat(None)]
    told = kinds.count(0)
    while rest:
        part, rest = _split(rest)
        size = kinds.count(len(sources))
        told += size
        sources.append(iter(decode_column(part, size, depth + 1)))
        if len(sources) > _KINDS:
            raise WireError("a mixed column has too many parts", where="column")
    if told != count:
        raise WireError("a mixed column names a part that it does not have", where="column")
    return list(map(next, map(sources.__getitem__, kinds)))


def _pick(values: Sequence[Any], places: list[int]) -> list[Any]:
    return list(map(values.__getitem__, _places(places, len(values))))


def _places(places: list[int], count: int) -> list[int]:
    if not within(places, 0, count - 1):
        raise WireError("a column names a value that its dictionary does not have", where="column")
    return places
