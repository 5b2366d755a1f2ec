"""What a row costs on the wire, against the plain rows compressed by the same compressor.

A batch is a whole message of 1,000 rows, with header, vector, digest, causal lengths or stamps, and dots; the
raw rows are MessagePack arrays of the columns' values alone. Every shape is sent twice: as one site's own
commit, and as what a site relays that has it from eight others.
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
from everview.replication.wire.codec import encode
from everview.replication.wire.frame import LEVEL
from everview.replication.wire.messages import Columns, Cursor, Greeting, Message, Page, Place, Share

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


def batch(shape: str, *, rows: int = ROWS, relayed: bool = False, seed: int = 7) -> tuple[bytes, list[Row]]:
    """Return a message with rows of a shape, and the rows."""
    rng = random.Random(seed)
    plain = [SHAPES[shape](rng, number) for number in range(rows)]
    keyed = shape in {"readings", "uuids"}
    told = [_relayed if relayed else _own for _ in plain]
    made = [
        (*how(rng, number, keyed=keyed), row)
        for how, (number, row) in zip(told, enumerate(plain), strict=True)
    ]
    made.sort(key=lambda one: one[:2])  # a site's rows come in the order of their numbers
    sites, numbers = [one[0] for one in made], [one[1] for one in made]
    steps = [
        number if place == 0 or sites[place - 1] != sites[place] else number - numbers[place - 1]
        for place, number in enumerate(numbers)
    ]
    cells: list[Sequence[Any]] = [list(column) for column in zip(*(one[3] for one in made), strict=True)]
    columns = Columns([*cells, [one[2] for one in made]], sites, steps, [[0] * 3, [17, 2, 6]])
    return _message(shape, rows, columns), plain


def _own(_: random.Random, number: int, *, keyed: bool) -> tuple[int, int, int]:
    return 0, 8120 + number, _STAMP if keyed else 1


def _relayed(rng: random.Random, number: int, *, keyed: bool) -> tuple[int, int, int]:
    """Rows of eight sites in commits of about ten rows."""
    commit = number // 10
    site, first = 1 + commit * 5 % _PEERS, 400 + 10 * (commit // _PEERS)
    extra = _STAMP + commit * 7_919_000_000 + commit % 3 if keyed else rng.choice((1, 1, 1, 1, 2, 3))
    return site, first + number % 10, extra


def _message(shape: str, rows: int, columns: Columns) -> bytes:
    """The last page of a cut with all that goes with it: vectors, removals, a digest, a greeting."""
    rng = random.Random(shape)
    sites = [rng.randbytes(8) for _ in range(_PEERS + 1)]
    vector = [number for place in range(len(sites)) for number in (place, rng.randrange(5000))]
    digest = (rng.getrandbits(31), rng.getrandbits(31))
    share = Share(Place(shape), rows, vector, 1, 3, digest)
    head = Cursor(812, rng.getrandbits(53))
    message = Message(
        rng.randbytes(8),
        sites,
        [f"site-{place}" for place in range(len(sites))],
        Greeting(head, Cursor(4711, rng.getrandbits(53)), rng.getrandbits(32), sites[1], None),
        page=Page(rng.getrandbits(53), True, head, [share]),
    )
    return encode(message, [columns])


def wire_ratio(*, rows: int = ROWS) -> Ratios:
    """Return the ratios of all shapes, for own rows and for relayed ones."""
    ratios = {}
    for shape in SHAPES:
        for relayed in (False, True):
            data, plain = batch(shape, rows=rows, relayed=relayed)
            raw = zlib.compress(b"".join(map(msgspec.msgpack.encode, plain)), LEVEL)
            ratios[f"{shape}, relayed" if relayed else shape] = len(data) / len(raw)
    return Ratios(ratios)


if __name__ == "__main__":
    found = wire_ratio()
    for shape, ratio in found.by_shape.items():
        print(f"{shape:20} {ratio:.3f}")
    print(f"{'worst':20} {found.worst:.3f}")
