"""Mutated and random messages against the decoder: a message or a WireError, and no memory that stays.

A message that is accepted must be one: it is encoded, and comes back the same; and whatever passes the check
against a store's columns can be put into a SQLite table.
"""

import functools
import random
import resource
import sqlite3
import struct
import sys
import zlib
from collections import Counter

import msgspec
from tests.replication.wire.samples import everything, exact_columns, worked

from everview.engines.sqlite.parts import COUNT, ID, INTEGER, SITE, value
from everview.errors import WireError
from everview.language.types import BIGINT, BLOB, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, Field, decimal_type
from everview.replication.messages import PROTOCOL, Message, Refusal, Section
from everview.replication.wire import check, decode, encode
from everview.replication.wire.frame import FRAME, MAGIC, frame, unframe

LIMIT = 2**20
ENDS = Counter()
"""How the cases ended: accepted, or the layer that refused."""

_GROWTH_BYTES = 64 * 2**20
_GROWTH_BLOCKS = 20_000
_EVERY = 5_000
_ODD = [0, 1, -1, 127, 128, 255, 256, 2**16, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]
_LEAVES = [None, True, 1.5, float("nan"), "", "a1", "\0", b"", b"\xff" * 16, [], {}, [[[]]], {1: {2: 3}}]

COLUMNS = (
    value(Field("n", BIGINT, nullable=False)),
    value(Field("d", DOUBLE)),
    value(Field("s", TEXT)),
    value(Field("b", BLOB)),
    value(Field("t", BOOLEAN)),
    value(Field("day", DATE)),
    value(Field("at", TIMESTAMP)),
    value(Field("short", decimal_type(7, 2))),
    value(Field("long", decimal_type(20, 4))),
    ID,
    COUNT,
    SITE,
    INTEGER,
)


def stored(rng, rows):
    """Rows as a store holds them, a column for each of the above."""
    own = [
        lambda: rng.choice([rng.randrange(1000), rng.getrandbits(63)]),
        lambda: rng.choice([None, "NaN", 0.0, rng.random()]),
        lambda: rng.choice([None, "", "tent", "ä\U0001f600", str(rng.random())]),
        lambda: rng.choice([None, b"", rng.randbytes(5)]),
        lambda: rng.choice([None, 0, 1]),
        lambda: rng.choice([None, 20000 + rng.randrange(100)]),
        lambda: 1_754_000_000_000_000 + rng.randrange(10**9),
        lambda: rng.randrange(-9999999, 9999999),
        lambda: "1" + str(rng.getrandbits(60)).zfill(20),
        lambda: rng.randbytes(16),
        lambda: rng.randrange(5),
        lambda: rng.randrange(2),
        lambda: rng.getrandbits(62) - 2**61,
    ]
    return Section("r", 0, rows, [[make() for _ in range(rows)] for make in own])


@functools.cache
def corpus():
    """(content, content's header as plain data, columns' bytes) of messages of every sort."""
    rng = random.Random(11)
    plain = worked()
    page = msgspec.structs.replace(plain.page, sections=[stored(rng, 40), stored(rng, 1), stored(rng, 0)])
    found = [
        everything(),
        plain,
        msgspec.structs.replace(plain, page=page),
        msgspec.structs.replace(everything(), page=page),
        Message(PROTOCOL, "p", ["a"], ["n"], refusal=Refusal("code", "text", True)),
    ]
    contents = [unframe(encode(one, level=0), protocols=[PROTOCOL], limit=LIMIT)[1] for one in found]
    return [(content, *_parts(content)) for content in contents]


def _parts(content):
    (size,) = struct.unpack_from("<I", content)
    return msgspec.msgpack.decode(content[4 : 4 + size]), content[4 + size :]


def case(seed):
    rng = random.Random(seed)
    content, header, rest = rng.choice(corpus())
    match rng.randrange(12):
        case 0:
            data = rng.choice([b"", MAGIC, MAGIC + bytes([PROTOCOL, 1])]) + rng.randbytes(rng.randrange(120))
        case 1:
            data = _mutated(rng, frame([content], protocol=PROTOCOL, level=rng.choice([0, 6])))
        case 2:
            data = _sealed(
                rng,
                _mutated(rng, frame([content], protocol=PROTOCOL, level=6)[FRAME.size :]),
                1,
                len(content),
            )
        case 3:
            data = _sealed(rng, rng.randbytes(rng.randrange(200)), rng.randrange(3), rng.choice(_ODD[:10]))
        case 4:
            data = frame([_mutated(rng, content)], protocol=PROTOCOL, level=rng.choice([0, 1]))
        case 5 | 6 | 7 | 8:
            size = len(content) - len(rest)
            data = frame([content[:size], _mutated(rng, rest, sorts=4)], protocol=PROTOCOL, level=0)
        case _:
            packed = msgspec.msgpack.encode(_bent(rng, header))
            data = frame([struct.pack("<I", len(packed)), packed, rest], protocol=PROTOCOL, level=0)
    ENDS[_outcome(data)] += 1
    GROWTH.watch()


def _outcome(data):
    try:
        message = decode(data, limit=LIMIT)
    except WireError as error:
        return error.where
    again = decode(encode(message, level=0), limit=LIMIT)
    assert exact_columns(again) == exact_columns(message)
    assert encode(again, level=0) == encode(message, level=0)
    end = "accepted"
    for section in message.page.sections if message.page else []:
        if len(section.columns) != len(COLUMNS):
            continue
        try:
            check(section, COLUMNS, len(message.sites))
        except WireError as error:
            end = error.where
        else:
            _store(section)
    return end


def _mutated(rng, data, *, sorts=6):
    """Some bytes replaced, by anything or by odd numbers; of the later sorts, dropped or doubled."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(len(found) + 1)
        size = rng.choice([1, 1, 2, 4, 8, 40])
        match rng.randrange(sorts):
            case 0:
                found[at : at + 1] = bytes([rng.randrange(256)])[: len(found) - at]
            case 1:
                found[at : at + 1] = bytes([rng.randrange(11)])[: len(found) - at]
            case 2:
                found[at : at + 4] = struct.pack("<I", rng.choice(_ODD) % 2**32)[: len(found) - at]
            case 3:
                found[at : at + 8] = struct.pack("<Q", rng.choice(_ODD) % 2**64)[: len(found) - at]
            case 4:
                del found[at : at + size]
            case _:
                found[at:at] = found[at : at + size]
    return bytes(found)


def _sealed(rng, sent, flags, plain):
    """A frame whose checksum is right, whatever is in it."""
    plain = plain if rng.random() < 0.7 else rng.choice(_ODD)
    head = FRAME.pack(MAGIC, PROTOCOL, flags, plain % 2**32, len(sent), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(sent, zlib.crc32(head))) + sent


def _bent(rng, thing):
    """Plain data with one leaf, or one whole branch, replaced by something odd."""
    if rng.random() < 0.12 or not isinstance(thing, list | dict) or not thing:
        return rng.choice(_LEAVES) if rng.random() < 0.5 else rng.choice(_ODD)
    if isinstance(thing, dict):
        key = rng.choice(list(thing))
        return {**thing, key: _bent(rng, thing[key])}
    place = rng.randrange(len(thing))
    match rng.randrange(12):
        case 0:
            return thing[:place] + thing[place + 1 :]
        case 1:
            return [*thing, thing[place]]
        case _:
            return [*thing[:place], _bent(rng, thing[place]), *thing[place + 1 :]]


@functools.cache
def _database():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE TABLE t ({', '.join(f'c{place}' for place in range(len(COLUMNS)))})")
    return connection


def _store(section):
    rows = list(zip(*section.columns, strict=True))
    connection = _database()
    connection.execute("BEGIN")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(COLUMNS))})", rows)
    assert connection.execute("SELECT * FROM t ORDER BY rowid").fetchall() == rows
    connection.execute("ROLLBACK")


class Growth:
    """After a while, neither the peak of memory nor the blocks that are held may grow any more."""

    def __init__(self):
        self.seen = 0
        self.first = None

    def watch(self):
        self.seen += 1
        if self.seen % _EVERY:
            return
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        held = sys.getallocatedblocks()
        self.first = self.first or (peak, held)
        assert peak - self.first[0] < _GROWTH_BYTES, f"the peak of memory grew from {self.first[0]} to {peak}"
        assert held - self.first[1] < _GROWTH_BLOCKS, f"{held - self.first[1]} more blocks are held"


GROWTH = Growth()


def summary():
    ends = ", ".join(f"{count} {end}" for end, count in ENDS.most_common())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return f"{ends}; at most {peak} MiB"
