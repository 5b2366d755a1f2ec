"""What a site knows of itself and others, as it lies in the store."""

from __future__ import annotations

import msgspec

from everview.replication.messages import Cursor


class Holding(msgspec.Struct):
    """A member holds a stream while `length` is odd.

    `sponsor` is whose snapshot it joined from, `heard` the step at which it was first heard of here.
    """

    length: int
    sponsor: str = ""
    heard: int = 0


class Told(msgspec.Struct):
    """What a member has: of each site every growth up to a commit; and the reading of its clock."""

    vector: dict[str, int]
    reading: int = 0


class Peer(msgspec.Struct):
    """A peer that was dialled: who answered last, and when."""

    incarnation: str
    synced_us: int


class State(msgspec.Struct):
    """Members, vectors, cursors, floors. Small: it grows with the number of sites, not with the rows."""

    members: dict[str, dict[str, dict[str, Holding]]] = {}
    """Incarnation → stream → group → holding."""
    known: dict[str, dict[str, Told]] = {}
    """Incarnation → whole → what it has."""
    expired: dict[str, int] = {}
    """Incarnation → the step at which it was expired."""
    steps: int = 0
    names: dict[str, str] = {}
    joined: dict[str, str] = {}
    """Stream that may be served → its group, the incarnation that founded it."""
    provisional: dict[str, str] = {}
    """Stream → the sponsor that has not listed this site yet."""
    cursors: dict[str, dict[str, Cursor]] = {}
    """Sender → stream → how far it was read."""
    floors: dict[str, int] = {}
    collected: dict[str, int] = {}
    """Stream → the commit at the last collection."""
    ripe: dict[str, Told] = {}
    """Relation → what was stable at the last pass, and may be collected at the next."""
    passed_us: int = 0
    """When the last pass was."""
    peers: dict[str, Peer] = {}
    """Address → who answered there."""
    dropped: int = 0
    """Rows that their senders may not write."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(State)


def dump(state: State) -> bytes:
    """Return the bytes that are stored."""
    return _ENCODER.encode(state)


def load(data: bytes) -> State:
    """Return the state that was stored."""
    return _DECODER.decode(data)
