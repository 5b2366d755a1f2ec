"""The roll: who holds what, and of whom something is known.

Sites that have talked for a while have the same one, however many they are. So a message names the sender's
roll by a digest, and leaves its entries out where the reader has the same: where the last message of the
reader named it. What is left out is looked up among the rolls that this site has had itself; it is the same
as if it had been sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from everview.replication.messages import Gossip
from everview.replication.state import State, Told

Listed = tuple[str, str, str]
"""Incarnation, stream, group."""

_KEPT = 8
"""How many of its rolls a site remembers: a message may refer to one that was its own a moment ago."""

_NAMED = 10_000
"""Of how many sites it is remembered which they named; to others the whole is sent."""

MENTIONED = Told({})
"""What is told of a member that is only mentioned."""

_ENCODER = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Roll:
    """A list of members, and the wholes of which something is known of each."""

    digest: bytes
    members: Mapping[Listed, tuple[int, str]]
    """Member → causal length, sponsor."""
    known: Mapping[str, Mapping[str, Told]]
    """Incarnation → whole → a mention."""


class Rolls:
    """The rolls of one site: its own, as it is now and was before, and those that others named last."""

    def __init__(self) -> None:
        self._seen = b""
        self._kept: dict[bytes, Roll] = {}
        self._own = roll_of(State())
        # Incarnation → the digest in its last message.
        self._named: dict[str, bytes] = {}

    def own(self, state: State) -> Roll:
        """Return the roll of this site as it is now."""
        known = [(site, list(wholes)) for site, wholes in state.known.items() if site not in state.expired]
        seen = _ENCODER.encode((state.members, known))
        if seen != self._seen:
            self._own, self._seen = roll_of(state), seen
            self._kept.pop(self._own.digest, None)
            self._kept[self._own.digest] = self._own
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return self._own

    def find(self, digest: bytes) -> Roll | None:
        """Return a roll that this site has had itself."""
        return self._kept.get(digest)

    def understand(self, gossip: Gossip | None) -> bool:
        """Whether nothing is left out that is not known here."""
        return gossip is None or not gossip.omitted or gossip.roll in self._kept

    def name(self, incarnation: str, digest: bytes) -> None:
        """Another site has named its roll."""
        self._named.pop(incarnation, None)
        self._named[incarnation] = digest
        if len(self._named) > _NAMED:
            del self._named[next(iter(self._named))]

    def is_shared(self, roll: Roll, reader: str | None) -> bool:
        """Whether a reader has named this roll as its own."""
        return reader is not None and self._named.get(reader) == roll.digest


def roll_of(state: State) -> Roll:
    """Return the roll of a site that knows this."""
    members = {
        (incarnation, stream, group): (held.length, held.sponsor)
        for incarnation, streams in sorted(state.members.items())
        for stream, groups in sorted(streams.items())
        for group, held in sorted(groups.items())
    }
    known = {
        incarnation: dict.fromkeys(sorted(wholes), MENTIONED)
        for incarnation, wholes in sorted(state.known.items())
        if incarnation not in state.expired
    }
    entries = [*((*member, *held) for member, held in members.items())]
    data = _ENCODER.encode((entries, [(site, list(wholes)) for site, wholes in known.items()]))
    return Roll(hashlib.blake2b(data, digest_size=16).digest(), members, known)
