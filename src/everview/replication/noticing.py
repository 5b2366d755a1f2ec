"""Noticing: whether what a site knows is another than it was, for less than to write all of it down.

A message is told thousands of times with the same members, and mostly nothing has to be saved for it. So what
was is kept as it was, and compared: where an entry is still the same object, that takes no look into it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from everview.replication.messages import Cursor
from everview.replication.state import Holding, State, Told, is_crowded

_ENCODER = msgspec.msgpack.Encoder()


class Extent:
    """Of whom something is known, and of what. It only grows, but where all of it is made anew."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Told]] | None = None
        self._counts = (0, 0)

    def note(self, state: State) -> bool:
        """Take note of how it is; return whether that is another than it was."""
        counts = (_extent(state), len(state.expired))
        if state.known is self._known and counts == self._counts:
            return False
        self._known, self._counts = state.known, counts
        return True


class Listing:
    """The list of members."""

    def __init__(self) -> None:
        self._members: dict[str, Mapping[str, Mapping[str, Holding]]] | None = None

    def is_as(self, state: State) -> bool:
        """Whether the list is as it was noted."""
        return self._members == state.members

    def note(self, state: State) -> bool:
        """Take note of the list; return whether that is another than it was."""
        if self.is_as(state):
            return False
        self._members = dict(state.members)
        return True


class Essence:
    """What has to be in the store before it is told: all but what is known anew at any time.

    That is the site's own last commit and its clock, how late it was at others when they spoke, and when.
    In a crowd it is also what others have: that stays true when it is forgotten, and they say it again.
    """

    def __init__(self) -> None:
        self._listing = Listing()
        self._names: dict[str, str] = {}
        self._cursors: dict[str, Mapping[str, Cursor]] = {}
        self._vectors: dict[str, dict[str, dict[str, int]]] = {}
        self._rest = b""

    def is_of(self, state: State, own: str) -> bool:
        """Whether the state has it still."""
        return (
            self._cursors == state.cursors
            and self.lists(state)
            and self._vectors == _vectors(state, own)
            and self._rest == _rest(state, own)
        )

    def lists(self, state: State) -> bool:
        """Whether the members are the same still, and their names."""
        return self._listing.is_as(state) and self._names == state.names

    def note(self, state: State, own: str) -> None:
        """Take note of it."""
        self._listing.note(state)
        self._names = dict(state.names)
        self._cursors = dict(state.cursors)
        self._vectors, self._rest = _vectors(state, own), _rest(state, own)


def _extent(state: State) -> int:
    return sum(map(len, state.known.values()))


def _vectors(state: State, own: str) -> dict[str, dict[str, dict[str, int]]]:
    """What sites have; of this one without its own commits, in a crowd of no other."""
    told = {own: state.known.get(own, {})} if is_crowded(state, own) else state.known
    nothing = {own: 0}
    return {
        incarnation: {
            whole: one.vector | nothing if incarnation == own else dict(one.vector)
            for whole, one in wholes.items()
        }
        for incarnation, wholes in told.items()
    }


def _rest(state: State, own: str) -> bytes:
    """What is small."""
    return _ENCODER.encode(
        (
            own,
            _extent(state),
            {whole: told.passed for whole, told in state.known.get(own, {}).items()},
            state.expired,
            state.settled,
            state.gone_over,
            state.stays,
            state.once_read,
            state.joined,
            state.provisional,
            state.former,
            state.bound,
            state.lifted,
            state.absorbed,
            state.founded,
            state.floors,
            state.apart,
            state.moved,
            state.collected,
            state.cancelled,
            state.met,
            state.passed_us,
            {address: peer.incarnation for address, peer in state.peers.items()},
            state.dropped,
            state.awaited,
            state.charge,
            state.inputs,
            state.cores,
            len(state.readers),
            state.expiry_days,
        )
    )
