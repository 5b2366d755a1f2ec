"""Integers in columns: offsets from a base, or from one to the next, or runs, in the fewest bytes a number.

Numbers are split into planes: first the lowest byte of all of them, then the second, up to the last that any
of them needs. So every width from 0 to 8 bytes costs the same few calls, and bytes that resemble each other,
such as the high ones, lie side by side, where compression finds them.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, compress, islice, repeat
from operator import ne, sub

from everview.engines.sqlite.integers import Integers
from everview.errors import WireError
from everview.replication.wire.codes import Code

__all__ = ["pack", "unpack"]

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_WHOLE = 8
_PLAIN = struct.Struct("<BBq")
_STEPS = struct.Struct("<BBqq")
_PARTS = struct.Struct("<BII")
_FEW = 8
"""Runs are written as runs when there is at most one for so many numbers."""
_TOO_LONG = "an integer of a column has more than 64 bits"


def pack(values: Sequence[int], *, runs: bool = True) -> bytes:
    """Return the column of these integers; WireError if one of them needs more than 64 bits.

    Without `runs` they are written one by one: the lengths of runs are, though many may be the same.
    """
    if not values:
        return _PLAIN.pack(Code.INTEGERS, 0, 0)
    least, greatest = min(values), max(values)
    if least < _LEAST or greatest > _GREATEST:
        raise WireError("an integer of more than 64 bits cannot be sent", where="column")
    width = _narrowest(greatest - least)
    if width == 0:
        return _PLAIN.pack(Code.INTEGERS, 0, least)
    steps = list(map(sub, islice(values, 1, None), values))
    if runs and (len(steps) - steps.count(0) + 1) * _FEW <= len(values):
        return _pack_runs(values)
    step, longest = min(steps), max(steps)
    between = _narrowest(longest - step)
    dearer = _STEPS.size - _PLAIN.size + between * len(steps) >= width * len(values)
    if not dearer and _LEAST <= step <= longest <= _GREATEST:
        return _STEPS.pack(Code.DELTAS, between, step, values[0]) + _planes(steps, step, between)
    if width == _WHOLE or (least >= 0 and _narrowest(greatest) == width):
        least = 0
    return _PLAIN.pack(Code.INTEGERS, width, least) + _planes(values, least, width)


def _narrowest(span: int) -> int:
    """How many bytes a number from 0 to `span` takes."""
    return (span.bit_length() + 7) // 8


def _pack_runs(values: Sequence[int]) -> bytes:
    ends = [*compress(range(1, len(values)), map(ne, islice(values, 1, None), values)), len(values)]
    lengths = pack([ends[0], *map(sub, islice(ends, 1, None), ends)], runs=False)
    distinct = pack([values[end - 1] for end in ends], runs=False)
    return _PARTS.pack(Code.RUNS, len(ends), len(lengths)) + lengths + distinct


def unpack(data: memoryview, count: int) -> Integers:
    """Return the integers of a column; WireError unless there are `count` of them, each of 64 bits."""
    if not data:
        raise WireError("a column is empty", where="column")
    try:
        match data[0]:
            case Code.INTEGERS:
                _, width, base = _PLAIN.unpack_from(data)
                return _unpack_offsets(data[_PLAIN.size :], count, width, base)
            case Code.DELTAS:
                _, width, base, first = _STEPS.unpack_from(data)
                if count == 0:
                    raise WireError("steps between no integers", where="column")
                return _unpack_steps(data[_STEPS.size :], count, width, base, first)
            case Code.RUNS:
                return _unpack_runs(data, count)
            case code:
                raise WireError(f"a column of integers has the code {code}", where="column")
    except struct.error as error:
        raise WireError("a column ends within its first fields", where="column") from error


def _unpack_steps(data: memoryview, count: int, width: int, base: int, first: int) -> Integers:
    steps = _unpack_offsets(data, count - 1, width, base)
    if width == 0 and base == 1:  # places in a table mostly count up
        values = list(range(first, first + count))
    else:
        values = list(accumulate(steps, initial=first))
    if steps.least < 0:
        return _checked(values)
    if values[-1] > _GREATEST:
        raise WireError(_TOO_LONG, where="column")
    return Integers(values, first, values[-1])


def _unpack_runs(data: memoryview, count: int) -> Integers:
    _, runs, size = _PARTS.unpack_from(data)
    rest = data[_PARTS.size :]
    if runs > count or size > len(rest) or Code.RUNS in {*rest[:1], *rest[size : size + 1]}:
        raise WireError("a column of runs does not fit its rows", where="column")
    lengths = unpack(rest[:size], runs)
    if min(lengths, default=1) < 1 or sum(lengths) != count:
        raise WireError("the runs of a column are not as long as the column", where="column")
    values = unpack(rest[size:], runs)
    repeated = chain.from_iterable(map(repeat, values, lengths))
    return Integers(repeated, values.least, values.greatest)


def _unpack_offsets(data: memoryview, count: int, width: int, base: int) -> Integers:
    if width > _WHOLE or len(data) != width * count or (width == _WHOLE and base):
        raise WireError(f"{len(data)} bytes are not {count} integers of {width} bytes", where="column")
    if width == 0:
        return Integers([base] * count, base, base)
    offsets = data.tolist() if width == 1 else _joined(data, count, width)
    if width == _WHOLE:
        return Integers(offsets, _LEAST, _GREATEST)
    greatest = base + 256**width - 1
    if greatest > _GREATEST:
        return _checked(list(map(base.__add__, offsets)))
    return Integers(map(base.__add__, offsets) if base else offsets, base, greatest)


def _checked(values: list[int]) -> Integers:
    least, greatest = min(values, default=0), max(values, default=0)
    if least < _LEAST or greatest > _GREATEST:
        raise WireError(_TOO_LONG, where="column")
    return Integers(values, least, greatest)


def _type(width: int) -> str:
    return "BHIIqqqq"[width - 1]


def _planes(values: Iterable[int], base: int, width: int) -> bytes:
    offsets = map((-base).__add__, values) if base else values
    if width == 0:
        return b""
    if width == 1:
        return bytes(offsets)
    numbers = array(_type(width), offsets)
    if sys.byteorder == "big":
        numbers.byteswap()
    plain = numbers.tobytes()
    return b"".join(plain[place :: numbers.itemsize] for place in range(width))


def _joined(data: memoryview, count: int, width: int) -> list[int]:
    numbers = array(_type(width))
    size = numbers.itemsize
    plain = bytearray(count * size)
    for place in range(width):
        plain[place::size] = data[place * count : (place + 1) * count]
    numbers.frombytes(plain)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
