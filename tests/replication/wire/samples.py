"""A message of everything, and random columns, for the tests of the wire."""

import struct

from hypothesis import strategies as st

from everview.language.evolution import Shape
from everview.replication.wire.messages import (
    Ask,
    Columns,
    Cursor,
    Greeting,
    Message,
    News,
    Page,
    Place,
    Refusal,
    Share,
    Undone,
    Wish,
)

EXTREMES = [0, 1, -1, 255, 256, -256, 65535, 65536, 2**31, -(2**31), 2**53, 2**56, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, 1.5, -2.25, 1e308, 5e-324, float("inf"), float("-inf"), float("nan")]


def everything():
    """A message in which every field occurs, and the columns of its shares."""
    rows = [list(range(100, 124)), [f"place {number}" for number in range(24)], [None, 2.5] * 12]
    shares = [
        Share(Place("r"), 24, [0, 24, 1, 9], 1, 2, (5, 2**31 - 2)),
        Share(Place("s", "eu"), 0, [2, 7], 3, 1),
        Share(Place("v"), 0, []),
    ]
    every = [
        Columns(rows, [0] * 24, [1] * 24, [[0, 1], [3, 4]]),
        Columns([[]], [], [], [[2], [5], [6]]),
        Columns([], [], []),
    ]
    message = Message(
        b"program!",
        [b"annannan", b"bobbobbo", b"eveeveev"],
        ["ann", "bob", "eve"],
        Greeting(Cursor(12, -5), Cursor(4, 9), 77, b"bobbobbo", ["r", "s"]),
        News(Cursor(3, 1), 5, [Place("r"), Place("s", "eu")]),
        Ask(-8, Cursor(0, 0), [Wish(Place("r"), [0, 3], [1, 2], True)]),
        Page(3, True, Cursor(12, -5), shares),
        Refusal("program", "another program", False),
        {"r": Shape("set", (("a", "BIGINT", True),))},
        [Undone("r", 1, 5, "not the owner's")],
    )
    return message, every


def exact(value):
    """A form in which a value equals only itself: type and bits."""
    return type(value), struct.pack("<d", value) if type(value) is float else value


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
