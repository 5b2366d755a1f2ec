"""What a row costs on the wire, against the plain rows compressed by the same compressor.

A batch is a whole message of 1,000 rows, with header, gossip, causal lengths or stamps, origins and
versions; the raw rows are MessagePack arrays of the columns' values alone. Every shape is sent twice: as
one site's own commit, and as what a site relays that has it from eight others.
"""

from __future__ import annotations

import random
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from benchmarks.streams import VALUES_OF_B, VALUES_OF_C
from everview.replication.messages import (
    PROTOCOL,
    Cursor,
    Gossip,
    Known,
    Member,
    Message,
    Page,
    Request,
    Section,
)
from everview.replication.wire import encode
from everview.replication.wire.frame import LEVEL

__all__ = ["ROWS", "SHAPES", "Ratios", "batch", "wire_ratio"]

ROWS = 1000
_PEERS = 8
_STAMP = 1_754_000_000_000_000 * 1024

Row = tuple[int | float | str | bytes | None, ...]

_WORDS = [
    "tent", "camp", "fire", "smoke", "person", "boat", "vehicle", "road", "bridge", "blocked",
    "flooded", "clear", "north", "south", "ridge", "valley", "river", "bank", "seen", "heard",
    "two", "three", "children", "adult", "injured", "waiting", "signal", "light", "radio",
    "battery", "low",
]  # fmt: skip


def _integers(rng: random.Random, number: int) -> Row:
    return (number, rng.randrange(10), rng.randrange(1000), rng.randrange(100_000), rng.randrange(10**9))


def _r1(rng: random.Random, number: int) -> Row:
    """Streams' R1(A, B, C, D, E)."""
    return (number, rng.randrange(VALUES_OF_B), rng.randrange(VALUES_OF_C), rng.randrange(10**6), number % 7)


def _text(rng: random.Random, number: int) -> Row:
    sentence = " ".join(rng.choices(_WORDS, k=rng.randint(3, 12)))
    return (f"drone-{rng.randrange(40)}", rng.choice(_WORDS), sentence, f"note {number}", None)


def _readings(rng: random.Random, number: int) -> Row:
    """A sensor's: device, time, position, temperature, and a remark now and then."""
    time = 1_754_000_000_000_000 + number * 1_000_000 + rng.randrange(50_000)
    remark = rng.choice(_WORDS) if rng.random() < 0.1 else None
    return (
        f"s{rng.randrange(20)}",
        time,
        rng.uniform(46, 47),
        rng.uniform(7, 8),
        rng.randrange(-200, 400) / 10,
        remark,
    )


def _uuids(rng: random.Random, _: int) -> Row:
    return (
        str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        rng.choice(("open", "closed", "waiting")),
        rng.randrange(100),
    )


def _blobs(rng: random.Random, number: int) -> Row:
    return (rng.randbytes(16), rng.randbytes(rng.randint(0, 60)), number)


def _narrow(rng: random.Random, _: int) -> Row:
    """The hardest for us: rows so small that whatever goes with them counts."""
    return (rng.randrange(100), rng.randrange(50))


SHAPES: Mapping[str, Callable[[random.Random, int], Row]] = {
    "integers": _integers,
    "r1": _r1,
    "text": _text,
    "readings": _readings,
    "uuids": _uuids,
    "blobs": _blobs,
    "narrow": _narrow,
}


@dataclass(frozen=True, slots=True)
class Ratios:
    """Bytes of a message by compressed bytes of its raw rows, for every shape; and the worst of them."""

    by_shape: Mapping[str, float]

    @property
    def worst(self) -> float:
        """The greatest ratio."""
        return max(self.by_shape.values())


def batch(shape: str, *, rows: int = ROWS, relayed: bool = False, seed: int = 7) -> tuple[Message, list[Row]]:
    """Return a message with rows of a shape, and the rows."""
    rng = random.Random(seed)
    plain = [SHAPES[shape](rng, number) for number in range(rows)]
    keyed = shape in {"readings", "uuids"}
    meta = [_relayed(rng, number, keyed=keyed) if relayed else _own(keyed=keyed) for number in range(rows)]
    columns: list[Sequence[Any]] = [
        list(column)
        for column in zip(*(row + more for row, more in zip(plain, meta, strict=True)), strict=True)
    ]
    return _message(Section(shape, 0, rows, columns)), plain


def _own(*, keyed: bool) -> tuple[int, ...]:
    return (1, _STAMP, 0, 812) if keyed else (1, 0, 812)


def _relayed(rng: random.Random, number: int, *, keyed: bool) -> tuple[int, ...]:
    """Rows of eight sites in commits of about ten rows, in the order in which they arrived."""
    commit = number // 10
    site, seq = 1 + commit * 5 % _PEERS, 40 + commit // _PEERS
    if keyed:
        return (int(rng.random() > 0.1), _STAMP + commit * 7_919_000_000 + commit % 3, site, seq)
    return (rng.choice((1, 1, 1, 1, 2, 3)), site, seq)


def _message(section: Section) -> Message:
    rng = random.Random(section.stream)
    sites = [rng.randbytes(16).hex() for _ in range(_PEERS + 1)]
    places = range(len(sites))
    vector = [number for place in places for number in (place, rng.randrange(5000))]
    return Message(
        PROTOCOL,
        rng.randbytes(32).hex(),
        sites,
        [f"site-{place}" for place in places],
        Request(sites[1], {section.stream: Cursor(4711, rng.getrandbits(62))}, [section.stream], 0, b""),
        Page(1, b"", b"", True, 812, {section.stream: 800}, {812: rng.getrandbits(62)}, [section]),
        Gossip(
            [Member(place, section.stream, sites[0], 1, max(place - 1, 0)) for place in places],
            [Known(place, section.stream, vector, _STAMP + place) for place in places],
            {section.stream: 2},
            {place: Cursor(rng.randrange(5000), rng.getrandbits(62)) for place in places},
            {section.stream: [sites[0]]},
            {section.stream: 700},
            {},
            {"": rng.randbytes(8), section.stream: rng.randbytes(8)},
            [],
        ),
    )


def wire_ratio(*, rows: int = ROWS) -> Ratios:
    """Return the ratios of all shapes, for own rows and for relayed ones."""
    ratios = {}
    for shape in SHAPES:
        for relayed in (False, True):
            message, plain = batch(shape, rows=rows, relayed=relayed)
            raw = zlib.compress(b"".join(map(msgspec.msgpack.encode, plain)), LEVEL)
            ratios[f"{shape}, relayed" if relayed else shape] = len(encode(message)) / len(raw)
    return Ratios(ratios)


if __name__ == "__main__":
    found = wire_ratio()
    for shape, ratio in found.by_shape.items():
        print(f"{shape:20} {ratio:.3f}")
    print(f"{'worst':20} {found.worst:.3f}")
