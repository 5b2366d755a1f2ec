"""Messages for the tests of the wire: one small and worked out, one of everything, and random ones."""

import random
import struct

from hypothesis import strategies as st

from everview.language.limits import LONGEST
from everview.replication.messages import (
    PROTOCOL,
    Cursor,
    Gossip,
    Known,
    Member,
    Message,
    Page,
    Refusal,
    Request,
    Section,
)

EXTREMES = [0, 1, -1, 255, 256, -256, 65535, 65536, 2**31, -(2**31), 2**53, 2**56, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, 1.5, -2.25, 1e308, 5e-324, float("inf"), float("-inf"), float("nan")]


def page_of(*sections):
    return Page(3, b"", b"\x01", True, 12, {"r": 9}, {9: 77, 12: -5}, list(sections))


def message_of(*sections):
    return Message(PROTOCOL, "p", ["a1", "b2"], ["s0", "s1"], page=page_of(*sections))


def worked():
    """The example of docs/PROTOCOL.md: three rows of a set relation r (n BIGINT, what TEXT)."""
    columns = [[7, 8, 9], ["tent", None, "tent"], [1, 1, 1], [0, 1, 1], [12, 5, 6]]
    return message_of(Section("r", 0, 3, columns))


def everything():
    """A message in which every field and every coding occurs."""
    rng = random.Random(5)
    ids = [rng.randbytes(16) for _ in range(6)]
    columns = [
        list(range(100, 124)),
        [rng.choice(EXTREMES) for _ in range(24)],
        [5] * 12 + [9] * 12,
        [rng.choice(DOUBLES) for _ in range(24)],
        [float(number) / 7 for number in range(24)],
        [f"place {number}" for number in range(24)],
        ["ja", "nein"] * 12,
        [rng.randbytes(number % 5) for number in range(24)],
        [rng.choice(ids) for _ in range(24)],
        [rng.choice([None, 4, 2.5, "NaN", b"\0\1"]) for _ in range(24)],
        [None] * 24,
    ]
    return Message(
        PROTOCOL,
        "program",
        ["a1", "b2", "c3"],
        ["s0", "s1", "hub"],
        Request("b2", {"r": Cursor(4, -9), "v": Cursor(0, 0)}, ["r"], 8, b"after"),
        page_of(Section("r", 0, 24, columns), Section("v", 2, 6, [ids]), Section("v", 3, 0, [[], []])),
        Gossip(
            [Member(0, "r", "a1", 1, -1), Member(2, "v", "a1+c3", 3, 0)],
            [Known(1, "v>r", [0, 4, 2, 2**63 - 1], -1)],
            {"r": 2},
            {1: Cursor(7, 2**63 - 1)},
            {"r": ["a1", "c3"]},
            {"r": 5},
            {"v": Cursor(3, 4)},
            {"": b"roll", "r": b"another"},
            ["r"],
        ),
        Refusal("program", "another program", False),
    )


def exact(value):
    """A form in which a value equals only itself: type and bits."""
    return type(value), struct.pack("<d", value) if type(value) is float else value


def exact_columns(message):
    sections = message.page.sections if message.page else []
    return [[list(map(exact, column)) for column in section.columns] for section in sections]


integers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EXTREMES) | st.integers(-3, 300)
doubles = st.sampled_from(DOUBLES) | st.integers(0, 2**64 - 1).map(
    lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0]
)
texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["", "a", "NaN", "ä\0", "\U0001f600", "x" * 5000]
)
blobs = st.binary(max_size=20) | st.binary(min_size=16, max_size=16)
cells = st.one_of(st.none(), integers, doubles, texts, blobs)


@st.composite
def columns(draw, count):
    """A column of one kind or of several, of few values or of many, rising, in runs, or in no order."""
    of = draw(
        st.sampled_from([integers, doubles, texts, blobs, cells, st.none() | integers, st.none() | texts])
    )
    match draw(st.integers(0, 3)):
        case 0:
            return draw(st.lists(of, min_size=count, max_size=count))
        case 1:
            few = draw(st.lists(of, min_size=1, max_size=4))
            return draw(st.lists(st.sampled_from(few), min_size=count, max_size=count))
        case 2:
            first, step = draw(st.integers(-(2**62), 2**62)), draw(st.sampled_from([0, 1, 1000, 2**40]))
            wobble = draw(st.lists(st.integers(0, 300), min_size=count, max_size=count))
            return [first + number * step + more for number, more in enumerate(wobble)]
        case _:
            run = [[value] * draw(st.integers(1, 40)) for value in draw(st.lists(of, min_size=1, max_size=4))]
            return ([value for part in run for value in part] * (count + 1))[:count]


@st.composite
def sections(draw):
    count = draw(st.sampled_from([0, 1, 2, 3, 17, 60]))
    width = draw(st.integers(0, 4))
    return Section(
        draw(st.text(max_size=5)),
        draw(st.integers(0, 9)),
        count,
        [draw(columns(count)) for _ in range(width)],
    )


counts = st.integers(0, 2**63 - 1)
numbers = st.integers(-(2**63), 2**63 - 1)
names = st.text(max_size=6)
cursors = st.builds(Cursor, counts, numbers)


@st.composite
def messages(draw):
    sites = draw(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4, unique=True))
    place = st.integers(0, len(sites) - 1)
    pairs = st.lists(st.tuples(place, counts), max_size=3).map(
        lambda found: [n for pair in found for n in pair]
    )
    members = st.builds(Member, place, names, names, st.integers(0, LONGEST), place | st.just(-1))
    known = st.builds(Known, place, names, pairs, numbers)
    rolls = draw(st.dictionaries(names, st.binary(max_size=9), max_size=3))
    gossip = st.builds(
        Gossip,
        st.lists(members, max_size=3),
        st.lists(known, max_size=3),
        st.dictionaries(names, counts, max_size=2),
        st.dictionaries(place, cursors, max_size=2),
        st.dictionaries(names, st.lists(names, min_size=1, max_size=2), max_size=2),
        st.dictionaries(names, counts, max_size=2),
        st.dictionaries(names, cursors, max_size=2),
        st.just(rolls),
        st.lists(st.sampled_from(sorted(rolls)), unique=True) if rolls else st.just([]),
    )
    request = st.builds(
        Request,
        names,
        st.dictionaries(names, cursors, max_size=3),
        st.lists(names, max_size=3),
        numbers,
        st.binary(max_size=9),
    )
    page = st.builds(
        Page,
        numbers,
        st.binary(max_size=9),
        st.binary(max_size=9),
        st.booleans(),
        counts,
        st.dictionaries(names, counts, max_size=2),
        st.dictionaries(counts, numbers, max_size=2),
        st.lists(sections(), max_size=3),
    )
    refusal = st.builds(Refusal, names, names, st.booleans())
    labels = draw(st.lists(names, min_size=len(sites), max_size=len(sites)))
    optional = [draw(st.none() | part) for part in (request, page, gossip, refusal)]
    return Message(PROTOCOL, draw(names), sites, labels, *optional)
