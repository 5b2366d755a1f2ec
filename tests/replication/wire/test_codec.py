"""Messages survive the wire, bit by bit, and the format does not change by accident."""

import hashlib
import re
import struct
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replication.wire.samples import (
    EXTREMES,
    everything,
    exact_columns,
    message_of,
    messages,
    page_of,
    worked,
)

from everview.errors import WireError
from everview.replication.messages import PROTOCOL, Gossip, Known, Member, Message, Section
from everview.replication.wire import decode, encode
from everview.replication.wire.codes import Code
from everview.replication.wire.columns import decode_column, encode_column
from everview.replication.wire.frame import FRAME, frame, unframe

GOLDEN = (1504, "cbdb388fd78b6a65a8e4d54fc326310c685b0a8004de599706e5034bb7971589")
GOLDEN_1 = (1482, "74149250d19f17a62c56c49ffdd9115628c45a1257aec1db2accf5ffc4fe704a")
PROTOCOL_PAGE = Path(__file__).parents[3] / "docs" / "PROTOCOL.md"


def without_cells(message):
    if message.page is None:
        return message
    empty = [msgspec.structs.replace(section, columns=[]) for section in message.page.sections]
    return msgspec.structs.replace(message, page=msgspec.structs.replace(message.page, sections=empty))


@settings(max_examples=400, deadline=None)
@given(messages())
def test_a_message_comes_back_as_it_was(message):
    for level in (0, 6):
        back = decode(encode(message, level=level))
        assert without_cells(back) == without_cells(message)
        assert exact_columns(back) == exact_columns(message)


@pytest.mark.parametrize("count", [1, 2, 7, 64, 300])
def test_extreme_integers_next_to_each_other(count):
    for pair in product(EXTREMES, repeat=2):
        column = [*pair] * count
        assert decode_column(memoryview(encode_column(column, None)), len(column), []) == column


def test_steps_of_more_than_64_bits_between_a_few():
    """From the least to 0, or from the bits of -0.0 to those of 0.0, is more than a column of steps holds."""
    for few in product(EXTREMES, repeat=3):
        bits = struct.pack("<3q", *few)
        for kind in "qd":
            coded = encode_column(struct.unpack(f"<3{kind}", bits), None)
            assert struct.pack(f"<3{kind}", *decode_column(memoryview(coded), 3, [])) == bits


@given(st.lists(st.integers(1, 30), min_size=1, max_size=3), st.integers(1, 60), st.integers(0, 9))
def test_runs_may_be_as_long_as_each_other(lengths, times, last):
    """Their lengths are then a column of runs themselves, and runs do not nest."""
    values = [n for n, length in enumerate(lengths * times) for _ in range(length)] + [-1] * last
    data = encode_column(values, None)
    assert decode_column(memoryview(data), len(values), None) == values


def test_long_columns_and_long_texts():
    columns = [
        [f"{number}" * (number % 50) for number in range(3000)],
        [number**5 for number in range(3000)],
        [number // 700 for number in range(3000)],
        ["y" * 100_000] + ["z"] * 2999,
    ]
    message = message_of(Section("r", 0, 3000, columns))
    assert decode(encode(message)) == message


def test_the_example_of_the_documentation():
    """The bytes in docs/PROTOCOL.md are those of the code, in both directions."""
    blocks = re.findall(r"^```hex\n(.*?)^```$", PROTOCOL_PAGE.read_text(), re.DOTALL | re.MULTILINE)
    text = "".join(line.split("#")[0] for block in blocks for line in block.splitlines())
    assert encode(worked(), level=0).hex() == re.sub(r"\s", "", text)
    assert decode(bytes.fromhex(text)) == worked()


def test_the_format_is_what_it_was():
    """A change of this digest is a change of the protocol: raise PROTOCOL, and keep reading the old form."""
    plain = encode(everything(), level=0)
    assert (len(plain), hashlib.sha256(plain).hexdigest()) == GOLDEN
    assert exact_columns(decode(plain)) == exact_columns(everything())


def test_a_message_in_the_first_protocol_is_read():
    """Its gossip ended before the roll: that has no name, and nothing is left out."""
    old = (Path(__file__).parent / "protocol_1.message").read_bytes()
    assert (len(old), hashlib.sha256(old).hexdigest()) == GOLDEN_1
    gossip = msgspec.structs.replace(everything().gossip, rolls={}, omitted=[])
    now = msgspec.structs.replace(everything(), gossip=gossip)
    assert without_cells(decode(old)) == without_cells(now)
    assert exact_columns(decode(old)) == exact_columns(now)
    for data, other in ((encode(everything(), level=0), 1), (old, PROTOCOL)):  # each has its own fields
        refused(frame([data[FRAME.size :]], protocol=other, level=0), "header")


def test_every_coding_occurs_in_the_sample():
    codes = set()
    for section in everything().page.sections:
        for column in section.columns:
            ids = {value: 0 for value in column if isinstance(value, bytes)}
            coded = encode_column(column, ids)
            codes.add(coded[0])
            if coded[0] == Code.DICTIONARY:
                codes.add(coded[9])
    assert codes == set(Code)


def test_the_bytes_do_not_depend_on_the_order_of_a_set():
    names = [f"n{number % 30}" for number in range(90)]
    coded = encode_column(names, None)
    assert coded[0] == Code.DICTIONARY
    assert coded.index(b"n0n1n2n3") > 0


def test_ids_travel_once_a_message():
    ids = [hashlib.sha256(bytes([number])).digest()[:16] for number in range(100)]
    once = len(encode(message_of(Section("v", 0, 100, [ids]))))
    thrice = message_of(Section("v", 0, 100, [ids]), Section("v", 1, 200, [ids * 2, ids[::-1] * 2]))
    assert len(encode(thrice)) < once + 400
    assert decode(encode(thrice)) == thrice


@pytest.mark.parametrize(
    "columns",
    [
        [[1, 2]],
        [[1, 2, 2**63]],
        [[1, -(2**63) - 1, 0]],
        [["a", "b", "\ud800"]],
        [[True, False, True]],
        [[1, [], 2]],
    ],
    ids=["short", "great", "small", "surrogate", "bool", "list"],
)
def test_what_no_store_holds_is_not_sent(columns):
    with pytest.raises(WireError):
        encode(message_of(Section("r", 0, 3, columns)))


def reframed(content, *, level=0):
    return frame([content], protocol=PROTOCOL, level=level)


def with_header(change, rest=None):
    """The worked example, with its header changed as plain data."""
    _, content = unframe(encode(worked(), level=0), protocols=[PROTOCOL], limit=10**6)
    (size,) = struct.unpack_from("<I", content)
    header = msgspec.msgpack.decode(content[4 : 4 + size])
    change(header)
    changed = msgspec.msgpack.encode(header)
    tail = content[4 + size :] if rest is None else rest
    return reframed(struct.pack("<I", len(changed)) + changed + tail)


def refused(data, where, **options):
    with pytest.raises(WireError) as caught:
        decode(data, **options)
    assert caught.value.where == where, caught.value
    return caught.value


def test_damage_on_the_way_may_be_tried_again():
    data = encode(worked())
    for place in range(FRAME.size, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        assert refused(bytes(damaged), "frame").retry
    for size in range(len(data)):
        assert refused(data[:size], "frame").retry
    assert refused(data + b"\0", "frame").retry


def test_another_protocol_is_named():
    error = refused(frame([b"whatever"], protocol=9, level=0), "frame")
    assert "protocol 9" in str(error)
    assert not error.retry
    refused(b"PK\3\4" + encode(worked())[4:], "frame")


def test_unknown_flags_and_lengths_that_lie():
    _, content = unframe(encode(worked()), protocols=[PROTOCOL], limit=10**6)
    whole = reframed(content, level=9)
    for flags, plain in [(3, len(content)), (0, len(content)), (1, len(content) - 1), (1, len(content) + 1)]:
        refused(resealed(whole, flags=flags, plain=plain), "frame")
    refused(resealed(whole, flags=1, plain=len(content), tail=b"more"), "frame")
    assert decode(resealed(whole, flags=1, plain=len(content))) == worked()


def resealed(data, *, flags, plain, tail=b""):
    """The frame with other fields, under a checksum that is right."""
    import zlib

    sent = data[FRAME.size :] + tail
    head = FRAME.pack(data[:4], data[4], flags, plain, len(sent), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(sent, zlib.crc32(head))) + sent


def test_a_header_that_lies():
    def set_at(*path, value):
        def change(header):
            for step in path[:-1]:
                header = header[step]
            header[path[-1]] = value

        return change

    page, section = (4,), (4, 7, 0)
    for where, change in [
        ("header", set_at(1, value=[])),
        ("header", set_at(1, value=["a1", "a1"])),
        ("header", set_at(2, value=["s0"])),
        ("header", set_at(0, value=7)),
        ("header", lambda header: header.append(0)),
        ("header", lambda header: header.pop()),
        ("header", set_at(*page, 4, value=-1)),
        ("header", set_at(*page, 4, value=2**63)),
        ("header", set_at(*section, 2, value=-3)),
        ("section", set_at(*section, 2, value=2**62)),
        ("column", set_at(*section, 2, value=4)),
        ("section", set_at(*section, 3, 0, value=2**40)),
        ("section", set_at(7, value=1)),
        ("section", set_at(7, value=2**60)),
        ("section", set_at(*page, value=None)),
    ]:
        refused(with_header(change), where)
    nested = msgspec.Raw(b"\x91" * 100_000 + b"\x90")
    refused(with_header(set_at(3, value=nested)), "header")
    refused(with_header(lambda header: header.append(nested)), "header")
    refused(with_header(lambda _: None, rest=b""), "section")
    refused(reframed(b"\xff\xff\xff\xff"), "header")
    refused(reframed(b"\0\0"), "header")


@pytest.mark.parametrize(
    "gossip",
    [
        Gossip([Member(2, "r", "g", 1, 0)], [], {}, {}, {}, {}, {}, {}, []),
        Gossip([Member(0, "r", "g", 1, 2)], [], {}, {}, {}, {}, {}, {}, []),
        Gossip([Member(0, "r", "g", 1, -2)], [], {}, {}, {}, {}, {}, {}, []),
        Gossip([], [Known(2, "r", [], 0)], {}, {}, {}, {}, {}, {}, []),
        Gossip([], [Known(0, "r", [2, 9], 0)], {}, {}, {}, {}, {}, {}, []),
        Gossip([], [Known(0, "r", [1], 0)], {}, {}, {}, {}, {}, {}, []),
        Gossip([], [], {"r": -1}, {}, {}, {}, {}, {}, []),
        Gossip([], [], {}, {2: (1, 1)}, {}, {}, {}, {}, []),
        Gossip([], [], {}, {}, {}, {}, {}, {"r": b"x" * 65}, []),
        Gossip([], [], {}, {}, {}, {}, {}, {"r": b"x"}, [""]),
    ],
)
def test_gossip_about_sites_that_are_not_listed(gossip):
    refused(encode(msgspec.structs.replace(worked(), gossip=gossip)), "header")


INTEGER = b"\x01\x01" + bytes(8)


@pytest.mark.parametrize(
    "column",
    [
        b"",
        b"\0",
        b"\x63",
        b"\x01",
        b"\x01\x09" + bytes(8) + bytes(27),
        b"\x01\x01" + bytes(8) + b"\1\2",
        b"\x01\x01" + bytes(8) + b"\1\2\3\4",
        b"\x01\x08" + struct.pack("<q", 1) + bytes(24),
        b"\x01\x01" + struct.pack("<q", 2**63 - 2) + b"\0\1\2",
        b"\x02\x00" + struct.pack("<qq", 2**62, 2**62),
        b"\x02\x01" + struct.pack("<q", 0),
        b"\x03" + struct.pack("<II", 4, 10) + b"\x01\0" + bytes(16),
        b"\x03" + struct.pack("<II", 1, 10) + b"\x01\0" + struct.pack("<q", 4) + b"\x01\0" + bytes(8),
        b"\x03" + struct.pack("<II", 1, 10) + b"\x01\0" + struct.pack("<q", 3) + b"\x03" + bytes(8),
        b"\x03" + struct.pack("<II", 3, 99) + b"\x01\0" + struct.pack("<q", 1),
        b"\x03" + struct.pack("<II", 2, 12) + b"\x01\1" + struct.pack("<q", -1) + b"\0\5" + INTEGER + b"\1\1",
        b"\x04",
        b"\x04\x05",
        b"\x05\x00\x00",
        b"\x05" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 1) + b"\xff\xfe\xfd",
        b"\x05" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 1) + b"abcd",
        b"\x05" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", -1) + b"abc",
        b"\x05" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 2**62) + b"abc",
        b"\x05" + struct.pack("<I", 9999) + b"abc",
        b"\x06" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 1) + b"ab",
        b"\x07" + INTEGER + b"\0\0\1",
        b"\x07\x01\0" + struct.pack("<q", -1),
        b"\x08",
        b"\x08" + struct.pack("<II", 4, 10) + b"\x01\0" + bytes(8) + INTEGER + b"\0\0\0",
        b"\x08" + struct.pack("<II", 1, 10) + b"\x01\0" + bytes(8) + INTEGER + b"\0\0\1",
        b"\x08" + struct.pack("<II", 1, 99) + b"\x01\0" + bytes(8) + INTEGER + b"\0\0\0",
        b"\x09",
        b"\x09" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", 1),
        b"\x09" + struct.pack("<I", 10) + b"\x01\0" + struct.pack("<q", -1),
        b"\x09"
        + struct.pack("<I", 10)
        + b"\x01\0"
        + bytes(8)
        + (struct.pack("<I", 10) + b"\x01\0" + bytes(8)) * 5,
        b"\x09"
        + struct.pack("<I", 10)
        + b"\x01\0"
        + struct.pack("<q", 1)
        + struct.pack("<I", 15)
        + b"\x09"
        + bytes(14),
    ],
)
def test_columns_of_three_rows_that_are_none(column):
    with pytest.raises(WireError) as caught:
        decode_column(memoryview(column), 3, [bytes(16)])
    assert caught.value.where == "column"


def test_dictionaries_do_not_nest_for_ever():
    column = b"\x01\0" + struct.pack("<q", 7)
    for _ in range(2000):
        column = b"\x08" + struct.pack("<II", 1, len(column)) + column + b"\x01\0" + bytes(8)
    with pytest.raises(WireError, match="deeply"):
        decode_column(memoryview(column), 1, [])


def test_the_protocol_of_a_message_is_in_its_frame():
    other = Message(5, "p", ["a"], ["n"], page=page_of())
    assert encode(other)[4] == 5
    refused(encode(other), "frame")
