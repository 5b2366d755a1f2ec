"""What a site knows of itself and others, as it lies in the store."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from everview.replication.messages import Cursor

EXPIRY_DAYS = 90
"""A member of whom nothing was heard for so long is given up, unless the site declares another limit."""

DAY_US = 24 * 3600 * 1_000_000


class Holding(msgspec.Struct, frozen=True):
    """A member holds a stream while `length` is odd. It never changes: another takes its place.

    `sponsor` is whose snapshot it joined from, `heard` the step, and `listed_us` the time, at which it was
    first heard of here; the step is 0 if this site was no member itself then.
    """

    length: int
    sponsor: str = ""
    heard: int = 0
    listed_us: int = 0


class Told(msgspec.Struct):
    """What a member has: of each site every growth up to a commit; and the reading of its clock."""

    vector: dict[str, int]
    reading: int = 0
    passed: int = 0
    """Of a keyed relation, the stamp that it knows the clocks of all members to have passed: who joins from
    it is moved past that.
    """


class Peer(msgspec.Struct):
    """A peer that was dialled: who answered last, and when."""

    incarnation: str
    synced_us: int


class Provisional(msgspec.Struct):
    """A stream that came with a snapshot that did not list this site.

    `covered` is the vector of that snapshot; of a view, of its inputs joined.
    """

    sponsor: str
    group: str
    covered: dict[str, int]


class Awaited(msgspec.Struct):
    """A marker that waits for the events it speaks of."""

    until: int
    vector: dict[str, int]


class Reader(msgspec.Struct, frozen=True):
    """Who reads published views: the epoch and mark of what it has of each, and when it last said so."""

    stands: Mapping[str, tuple[int, int]]
    heard_us: int


class State(msgspec.Struct):
    """Members, vectors, cursors, floors. Small: it grows with the number of sites, not with the rows."""

    members: dict[str, Mapping[str, Mapping[str, Holding]]] = {}
    """Incarnation → stream → group → holding. What is listed of a site never changes, but is replaced: so it
    takes little to see that nothing has.
    """
    known: dict[str, dict[str, Told]] = {}
    """Incarnation → whole → what it has."""
    expired: dict[str, int] = {}
    """Incarnation → the step at which it was expired."""
    settled: list[str] = []
    """Received views that have of those who are over no more than there is; all, until somebody is over."""
    gone_over: dict[str, dict[str, list[str]]] = {}
    """Incarnation → relation → groups that it was in, and has left for others."""
    stays: dict[str, dict[str, str]] = {}
    """Incarnation → relation → the group that it has said itself to be in, though it was in others, too."""
    steps: int = 0
    names: dict[str, str] = {}
    joined: dict[str, str] = {}
    """Stream that may be served → its group."""
    provisional: dict[str, Provisional] = {}
    former: dict[str, str] = {}
    """Stream → the group it was in before."""
    bound: dict[str, int] = {}
    """Stream that must return to its former group, or to one that has absorbed it → since when."""
    lifted: dict[str, int] = {}
    """Relation that is not joined yet → how far its unseen rows have been lifted so far."""
    absorbed: dict[str, list[str]] = {}
    """Stream → the groups that its group has absorbed, and those it was in itself."""
    founded: int = 0
    """Groups that were founded here: one that was left is not founded again under its name."""
    cursors: dict[str, Mapping[str, Cursor]] = {}
    """Sender → stream → how far it was read. Replaced like what is listed."""
    once_read: dict[str, Cursor] = {}
    """Sender → how far it was read for streams whose group was left since: by that it still is recognised."""
    floors: dict[str, int] = {}
    apart: dict[str, int] = {}
    """Relation → the floor when its group was last found to have taken in another. What that had forgotten
    may be longer than tuples that are known here, so whoever writes them goes above it.
    """
    moved: int = 0
    """The stamp past which the clock was moved though its time had not come (see `catching_up`), or 0."""
    collected: dict[str, int] = {}
    """Stream → the commit at the last collection."""
    cancelled: dict[str, dict[str, dict[str, int]]] = {}
    """Bag → group → a vector over all pairs forgotten of it there, by this site or by whom it joined from."""
    met: dict[str, int] = {}
    """Member that speaks here itself, though nothing of it is believed → the end of the day when it last
    did. It is not away.
    """
    ripe: dict[str, Told] = {}
    """Whole → what was stable at the last pass, and may be collected at the next."""
    passed_us: int = 0
    """When the last pass was."""
    peers: dict[str, Peer] = {}
    """Address → who answered there."""
    dropped: int = 0
    """Rows that their senders may not write."""
    awaited: dict[str, Awaited] = {}
    """Relation and source → the first marker whose events are not all here."""
    inputs: dict[str, list[str]] = {}
    """Stream of a view that this site's program does not have → the base relations it tells of."""
    evolved: int = 0
    """How often the store has gone over to another program."""
    charge: str = ""
    """The incarnation that is in charge of the source for which this store writes; empty for the first."""
    cores: list[str] = []
    """The cores and partial aggregates that the store received when it last looked: others are new to it."""
    readers: dict[str, Reader] = {}
    """Who reads published views from here, the one that was heard of last at the end."""
    expiry_days: int = EXPIRY_DAYS
    """A member of whom nothing was heard for so long is given up: it holds up nobody any longer."""

    @property
    def expiry_us(self) -> int:
        """The same in microseconds."""
        return self.expiry_days * DAY_US


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(State)
_OTHERS = msgspec.msgpack.Decoder(dict[str, dict[str, Told]])
_LISTED = msgspec.msgpack.Decoder(tuple[dict[str, Mapping[str, Mapping[str, Holding]]], dict[str, str]])


CROWD = 2048
"""A site is in a crowd when the vectors of the others would have more entries than this in all, were each as
long as its own: some 30 sites that write two relations. With every site there is one vector more, and every
vector has one entry more.
"""


def is_crowded(state: State, own: str) -> bool:
    """Whether what others have is too much to be told, or written, each time that something changes."""
    entries = sum(len(told.vector) for told in state.known.get(own, {}).values())
    return entries * (len(state.known) - 1) > CROWD


def dump(state: State, own: str) -> bytes:
    """Return the bytes that are stored; in a crowd without what is stored apart, because it changes less."""
    if is_crowded(state, own):
        state = msgspec.structs.replace(state, known={own: state.known[own]}, members={}, names={})
    return _ENCODER.encode(state)


def dump_others(state: State, own: str) -> bytes:
    """Return what others have, as it is stored in a crowd."""
    return _ENCODER.encode({site: wholes for site, wholes in state.known.items() if site != own})


def dump_listed(state: State) -> bytes:
    """Return the list of members, and what they are called, as it is stored in a crowd."""
    return _ENCODER.encode((state.members, state.names))


def load(data: bytes, others: bytes = b"", listed: bytes = b"") -> State:
    """Return the state that was stored."""
    state = _DECODER.decode(data)
    if listed:
        state.members, state.names = _LISTED.decode(listed)
    for site, wholes in _OTHERS.decode(others).items() if others else ():
        held = state.known.setdefault(site, {})
        for whole, told in wholes.items():
            if whole in held:  # as it was stored once, with a reading that is newer
                told.reading = max(told.reading, held[whole].reading)
                told.passed = max(told.passed, held[whole].passed)
            held[whole] = told
    return state
