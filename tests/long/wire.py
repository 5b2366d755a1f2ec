"""Mutated and random messages against the decoder: a message or a WireError, and no memory that stays.

A message that is accepted must be one: it is encoded, and comes back the same.
"""

import functools
import random
import resource
import struct
import sys
from collections import Counter

import msgspec
from tests.replication.wire.samples import everything, exact

from everview.errors import WireError
from everview.replication.wire.codec import decode, encode
from everview.replication.wire.frame import FRAME, MAGIC, frame, unframe
from everview.replication.wire.messages import PROTOCOL, Message

LIMIT = 2**20
ENDS = Counter()
"""How the cases ended: accepted, or the layer that refused."""

_GROWTH_BYTES = 64 * 2**20
_GROWTH_BLOCKS = 20_000
_EVERY = 5_000
_ODD = [0, 1, -1, 127, 128, 255, 256, 2**16, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]
_LEAVES = [None, True, 1.5, float("nan"), "", "a1", "\0", b"", b"\xff" * 8, [], {}, [[[]]], {1: {2: 3}}]


@functools.cache
def corpus():
    """The content of messages, and how long its header is."""
    found = [encode(*everything(), level=0), encode(Message(b"p", [b"annannan"], ["ann"]), level=0)]
    contents = [unframe(data, protocols=[PROTOCOL], limit=LIMIT)[1] for data in found]
    return [(content, struct.unpack_from("<I", content)[0]) for content in contents]


def spoiled(rng, content):
    """Some bytes are others, or gone, or twice there."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randrange(1, 5)]
            case 2:
                data[at:at] = rng.randbytes(rng.randrange(1, 5))
            case _:
                data[at : at + 8] = struct.pack("<q", rng.choice([n for n in _ODD if -(2**63) <= n < 2**63]))
        if not data:
            break
    return bytes(data)


def told_otherwise(rng, content, size):
    """The header has something else somewhere."""
    header = msgspec.msgpack.decode(content[4 : 4 + size])
    within = header
    while True:
        keys = list(range(len(within))) if isinstance(within, list) else list(within)
        if not keys:
            break
        key = rng.choice(keys)
        deeper = within[key]
        if isinstance(deeper, list | dict) and deeper and rng.random() < 0.8:
            within = deeper
            continue
        within[key] = rng.choice([*_ODD, *_LEAVES])
        break
    changed = msgspec.msgpack.encode(header)
    return struct.pack("<I", len(changed)) + changed + content[4 + size :]


def message(rng):
    """Bytes that may be a message."""
    if rng.random() < 0.1:
        data = MAGIC + rng.randbytes(rng.randrange(60))
        return data if rng.random() < 0.5 else rng.randbytes(rng.randrange(60))
    content, size = rng.choice(corpus())
    make = rng.random()
    if make < 0.5:
        content = told_otherwise(rng, content, size)
    elif make < 0.9:
        content = spoiled(rng, content)
    data = frame([content], protocol=PROTOCOL, level=rng.choice([0, 6]))
    if rng.random() < 0.1:
        spot = rng.randrange(FRAME.size)
        data = data[:spot] + rng.randbytes(1) + data[spot + 1 :]
    return data


class Growth:
    """Whether memory stays, seen now and then."""

    def __init__(self):
        self._cases, self._blocks, self._bytes = 0, None, None

    def look(self):
        self._cases += 1
        if self._cases % _EVERY:
            return
        blocks, size = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if self._blocks is None:
            self._blocks, self._bytes = blocks, size
        assert blocks < self._blocks + _GROWTH_BLOCKS, f"{blocks - self._blocks:,} more blocks are held"
        assert size < self._bytes + _GROWTH_BYTES, f"{size - self._bytes:,} more bytes at the peak"


GROWTH = Growth()


def case(seed):
    """Decode a message; what is accepted comes back the same."""
    rng = random.Random(seed)
    data = message(rng)
    try:
        found, columns = decode(data, limit=LIMIT)
    except WireError as error:
        ENDS[error.where] += 1
    else:
        ENDS["accepted"] += 1
        again, others = decode(encode(found, columns), limit=LIMIT)
        assert [[list(map(exact, one)) for one in share.all] for share in columns] == [
            [list(map(exact, one)) for one in share.all] for share in others
        ]
        assert repr(without_lengths(again)) == repr(without_lengths(found))
    GROWTH.look()


def without_lengths(found):
    """How long columns are coded may be another."""
    if found.page is None:
        return found
    shares = [msgspec.structs.replace(share, lengths=[]) for share in found.page.shares]
    derived = [msgspec.structs.replace(one, lengths=[]) for one in found.page.derived]
    return msgspec.structs.replace(
        found, page=msgspec.structs.replace(found.page, shares=shares, derived=derived)
    )


def summary():
    """How the cases ended."""
    return ", ".join(f"{count:,} {name}" for name, count in sorted(ENDS.items()))
