"""Messages survive the wire, what is none is refused, and no message makes its reader use much memory."""

import random
import struct
import tracemalloc
import zlib

import msgspec
import pytest
from tests.replication.wire.samples import everything, exact

from everview.errors import WireError
from everview.replication.wire.codec import decode, encode
from everview.replication.wire.frame import FRAME, frame, unframe
from everview.replication.wire.messages import PROTOCOL, Columns, Cursor, Message, Page, Place, Share

LIMIT = 2**20
CELLS = LIMIT // 16 // 3


def without_lengths(message):
    shares = [msgspec.structs.replace(share, lengths=[]) for share in message.page.shares]
    return msgspec.structs.replace(message, page=msgspec.structs.replace(message.page, shares=shares))


@pytest.mark.parametrize("level", [0, 6])
def test_a_message_comes_back_as_it_was(level):
    message, columns = everything()
    back, found = decode(encode(message, columns, level=level))
    assert without_lengths(back) == message
    assert [[list(map(exact, one)) for one in share.all] for share in found] == [
        [list(map(exact, one)) for one in share.all] for share in columns
    ]


def test_numbers_that_are_none_are_not_sent():
    message, columns = everything()
    for wrong in ([2**63], [-(2**63) - 1], ["\ud800"], [[]]):
        with pytest.raises(WireError):
            encode(message, [Columns([wrong * 24]), *columns[1:]])


def test_damage_on_the_way_may_be_tried_again():
    data = encode(*everything())
    for place in range(FRAME.size, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        assert refused(bytes(damaged), "frame").retry
    for size in range(len(data)):
        assert refused(data[:size], "frame").retry
    assert refused(data + b"\0", "frame").retry


def test_another_protocol_is_named():
    error = refused(frame([b"whatever"], protocol=2, level=0), "frame")
    assert "protocol 2" in str(error)
    assert not error.retry
    refused(b"PK\3\4" + encode(*everything())[4:], "frame")


def test_unknown_flags_and_lengths_that_lie():
    _, content = unframe(encode(*everything()), protocols=[PROTOCOL], limit=10**6)
    whole = frame([content], protocol=PROTOCOL, level=9)
    for flags, plain in [(3, len(content)), (0, len(content)), (1, len(content) - 1), (1, len(content) + 1)]:
        refused(resealed(whole, flags=flags, plain=plain), "frame")
    refused(resealed(whole, flags=1, plain=len(content), tail=b"more"), "frame")


def resealed(data, *, flags, plain, tail=b""):
    """The frame with other fields, under a checksum that is right."""
    sent = data[FRAME.size :] + tail
    head = FRAME.pack(data[:4], data[4], flags, plain, len(sent), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(sent, zlib.crc32(head))) + sent


def refused(data, where, **options):
    with pytest.raises(WireError) as caught:
        decode(data, **options)
    assert caught.value.where == where, caught.value
    return caught.value


def with_header(change, rest=None):
    """The message of everything, with its header changed as plain data."""
    _, content = unframe(encode(*everything(), level=0), protocols=[PROTOCOL], limit=10**6)
    (size,) = struct.unpack_from("<I", content)
    header = msgspec.msgpack.decode(content[4 : 4 + size])
    change(header)
    changed = msgspec.msgpack.encode(header)
    tail = content[4 + size :] if rest is None else rest
    return frame([struct.pack("<I", len(changed)) + changed + tail], protocol=PROTOCOL, level=0)


def set_at(*path, value):
    def change(header):
        for step in path[:-1]:
            header = header[step]
        header[path[-1]] = value

    return change


SITES, NAMES, ASK, PAGE = (1,), (2,), (5,), (6,)
SHARE = (*PAGE, 3, 0)


@pytest.mark.parametrize(
    ("where", "path", "value"),
    [
        ("header", SITES, []),
        ("header", SITES, [b"annannan", b"annannan"]),
        ("header", SITES, [b"ann"]),
        ("header", NAMES, ["a"] * 9),
        ("header", (0,), 7),
        ("header", (*ASK, 2, 0, 1), [3, 1]),
        ("header", (*ASK, 2, 0, 1), [0]),
        ("header", (*ASK, 2, 0, 1), [0, 1, 0, 2]),
        ("header", (*SHARE, 2), [0, 2**41]),
        ("header", (*SHARE, 1), -1),
        ("section", (*SHARE, 3), 9),
        ("section", (*SHARE, 1), 2**60),
        ("section", (*SHARE, 4), 2**60),
        ("section", (*SHARE, 6, 0), 2**40),
        ("column", (*SHARE, 1), 23),
        ("column", (*SHARE, 4), 3),
        ("section", PAGE, None),
        ("header", (9, 0, 3), "x" * 1001),
    ],
)
def test_a_header_that_lies(where, path, value):
    refused(with_header(set_at(*path, value=value)), where)


def test_a_header_that_is_none():
    nested = msgspec.Raw(b"\x91" * 100_000 + b"\x90")
    refused(with_header(set_at(3, value=nested)), "header")
    refused(with_header(lambda header: header.append(0)), "header")
    refused(with_header(lambda _: None, rest=b""), "section")
    for content in (b"\xff\xff\xff\xff", b"\0\0"):
        refused(frame([content], protocol=PROTOCOL, level=0), "header")


def one_column(column):
    return Share(Place("s"), len(column), []), Columns([column], [0] * len(column), [1] * len(column))


rng = random.Random(3)
GREEDY = {
    "one value": [7] * CELLS,
    "integers": [rng.randrange(300, 60000) for _ in range(CELLS)],
    "doubles": [rng.random() for _ in range(CELLS)],
    "texts": [f"{place:04x}" for place in range(CELLS)],
    "wide texts": ["\U0001f600", *(f"{place:012x}" for place in range(CELLS - 1))],
    "mixed": [rng.choice([None, 1.5, 3, "a"]) for _ in range(CELLS)],
    "one long value": ["x" * (LIMIT // 2)] * CELLS,
}


@pytest.mark.parametrize("name", GREEDY)
def test_what_is_taken_stays_within_sixteen_limits(name):
    share, columns = one_column(GREEDY[name])
    message = Message(b"p", [b"annannan"], ["ann"], page=Page(1, True, Cursor(1, 1), [share]))
    data = encode(message, [columns])
    tracemalloc.start()
    try:
        decode(data, limit=LIMIT)
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 16 * LIMIT


def test_bytes_that_were_changed_are_refused_or_read_and_nothing_else():
    message, columns = everything()
    _, content = unframe(encode(message, columns, level=0), protocols=[PROTOCOL], limit=10**6)
    rng = random.Random(8)
    read = 0
    for _ in range(3000):
        spoiled = bytearray(content)
        for _ in range(rng.choice([1, 1, 3])):
            spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
        try:
            decode(frame([bytes(spoiled)], protocol=PROTOCOL, level=0))
            read += 1
        except WireError:
            pass
    assert 100 < read < 2900
