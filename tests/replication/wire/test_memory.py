"""No message makes its reader use more than sixteen times the limit."""

import random
import struct
import tracemalloc

import pytest

from everview.errors import WireError
from everview.replication.messages import PROTOCOL, Cursor, Gossip, Known, Member, Request
from everview.replication.wire import decode
from everview.replication.wire.columns import encode_column
from everview.replication.wire.frame import frame
from everview.replication.wire.header import Header, PageHeader, SectionHeader, write_header

LIMIT = 2**20
SHARE = LIMIT // 16
CELLS = LIMIT // 16
rng = random.Random(3)


def whole(*, rest=b"", **fields):
    plain = {"request": None, "page": None, "gossip": None, "refusal": None, "ids": 0, **fields}
    header = write_header(Header("p", ["a"], ["n"], **plain))
    return frame([struct.pack("<I", len(header)), header, rest], protocol=PROTOCOL, level=6)


def page(*sections, tags=None):
    return PageHeader(0, b"", b"", True, 1, {}, tags or {}, list(sections))


def one_column(column):
    coded = encode_column(column, None)
    return whole(page=page(SectionHeader("s", 0, len(column), [len(coded)])), rest=coded)


GREEDY = {
    "known": lambda: whole(
        gossip=Gossip([], [Known(0, "", [], 0)] * (SHARE // 5 - 10), {}, {}, {}, {}, {}, {}, [])
    ),
    "members": lambda: whole(
        gossip=Gossip([Member(0, "", "", 1, 0)] * (SHARE // 6 - 10), [], {}, {}, {}, {}, {}, {}, [])
    ),
    "cursors": lambda: whole(
        request=Request("", {chr(place + 40): Cursor(0, 0) for place in range(SHARE // 8 - 100)}, [], 0, b"")
    ),
    "tags": lambda: whole(page=page(tags={place: 300 + place for place in range(SHARE // 6 - 100)})),
    "sections": lambda: whole(page=page(*[SectionHeader("", 0, 0, [])] * (SHARE // 5 - 20))),
    "empty columns": lambda: whole(
        page=page(SectionHeader("s", 0, 0, [10] * (SHARE // 2))), rest=(b"\1" + bytes(9)) * (SHARE // 2)
    ),
    "one value": lambda: one_column([7] * CELLS),
    "one long value": lambda: one_column(["x" * (LIMIT // 2)] * CELLS),
    "integers": lambda: one_column([rng.randrange(300, 60000) for _ in range(CELLS)]),
    "steps": lambda: one_column([place * 1000 + rng.randrange(300) for place in range(CELLS)]),
    "doubles": lambda: one_column([rng.random() for _ in range(CELLS)]),
    "texts": lambda: one_column([f"{place:04x}" for place in range(CELLS)]),
    "wide texts": lambda: one_column(["\U0001f600", *(f"{place:012x}" for place in range(CELLS - 1))]),
    "blobs": lambda: one_column([b"%04x" % place for place in range(CELLS)]),
    "mixed": lambda: one_column([rng.choice([None, 1.5, 3, "a"]) for _ in range(CELLS)]),
    "ids": lambda: whole(ids=LIMIT // 16 - 100, rest=bytes(LIMIT - 1600)),
}


def peak(data):
    tracemalloc.start()
    try:
        decode(data, limit=LIMIT)
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most


@pytest.mark.parametrize("name", GREEDY)
def test_what_is_taken_stays_within_sixteen_limits(name):
    assert 0.4 * LIMIT < peak(GREEDY[name]()) < 16 * LIMIT


@pytest.mark.parametrize(
    "make",
    [
        lambda: frame([bytes(2**25)], protocol=PROTOCOL, level=9),
        lambda: one_column([7] * (CELLS + 1)),
        lambda: one_column(["x" * LIMIT]),
        lambda: whole(page=page(SectionHeader("s", 0, 2**63 - 1, [10])), rest=b"\1" + bytes(9)),
        lambda: whole(page=page(SectionHeader("s", 0, 2**63 - 1, []))),
        lambda: whole(
            gossip=Gossip([], [Known(0, "", [], 0)] * (SHARE // 5 + 10), {}, {}, {}, {}, {}, {}, [])
        ),
    ],
    ids=["zip bomb", "cells", "content", "absurd count", "absurd count of nothing", "header"],
)
def test_what_is_beyond_the_limit_is_refused_before_it_costs_anything(make):
    data = make()
    tracemalloc.start()
    with pytest.raises(WireError):
        decode(data, limit=LIMIT)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * LIMIT


def test_a_bomb_that_lies_about_its_size_is_stopped_at_the_size_it_says():
    import zlib

    from everview.replication.wire.frame import FRAME, MAGIC

    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    sent = squeezer.compress(bytes(2**25)) + squeezer.flush()
    head = FRAME.pack(MAGIC, PROTOCOL, 1, 1000, len(sent), 0)[:-4]
    data = head + struct.pack("<I", zlib.crc32(sent, zlib.crc32(head))) + sent
    tracemalloc.start()
    with pytest.raises(WireError, match="should have 1000 bytes"):
        decode(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2 * len(sent) + 100_000
