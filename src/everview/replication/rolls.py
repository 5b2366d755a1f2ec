"""The roll: who holds what, and of whom something is known.

Sites that have talked for a while have the same one, however many they are. So a message names the sender's
roll by digests, and leaves its entries out where the reader has the same: where the last message of the
reader named it. What is left out is looked up among the rolls that this site has had itself; it is the same
as if it had been sent.

A roll has parts: the list of members, and for each relation of whom something is known. Only who hosts a
relation, or a view over it, knows something of it, and has any use for what others know.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import msgspec

from everview.replication.messages import Gossip
from everview.replication.noticing import Extent, Listing
from everview.replication.state import State, Told

Listed = tuple[str, str, str]
"""Incarnation, stream, group."""
Members = Mapping[Listed, tuple[int, str]]
"""Member → causal length, sponsor."""
Mentions = Mapping[str, Mapping[str, Told]]
"""Incarnation → whole → a mention."""

MEMBERS = ""
"""The name of the part that lists members; every other part has the name of its relation."""

_KEPT = 8
"""How many of its own a site remembers of each part: a message may refer to what was so a moment ago."""

_NAMED = 10_000
"""Of how many sites it is remembered what they named; to others the whole is sent."""

MENTIONED = Told({})
"""What is told of a member that is only mentioned."""

_ENCODER = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Roll:
    """A list of members, and for each relation the wholes of which something is known of each."""

    digests: Mapping[str, bytes]
    """Part → what it is named by."""
    members: Members
    mentions: Mapping[str, Mentions]
    """Relation → of whom something is known."""
    mentioned: Mentions
    """The same of all relations together."""
    known: Sequence[str] = ()
    """Of whom something is known, in order; left out of what another tells."""


class Rolls:
    """The rolls of one site: its own, as it is now and was before, and those that others named last."""

    def __init__(self) -> None:
        self._extent, self._listing = Extent(), Listing()
        self._own = Roll({}, {}, {}, {})
        # The mentions that were last put together, and what they came to.
        self._merged: tuple[list[Mentions], Mentions] = ([], {})
        self._members: dict[bytes, Members] = {}
        self._mentions: dict[str, dict[bytes, Mentions]] = {}
        # Incarnation → the digests in its last message.
        self._named: dict[str, Mapping[str, bytes]] = {}

    def own(self, state: State) -> Roll:
        """Return the roll of this site as it is now."""
        known, listed = self._extent.note(state), self._listing.note(state)
        if known or listed:
            own = roll_of(state)
            _keep(self._members, own.digests[MEMBERS], own.members)
            for relation, mentions in own.mentions.items():
                _keep(self._mentions.setdefault(relation, {}), own.digests[relation], mentions)
            self._own = own
        return self._own

    def understand(self, gossip: Gossip, own: Roll) -> Roll | None:
        """Return the parts that are left out; None if one is not known here.

        What others know of a relation of which nothing is known here is of no use, and left out for that.
        """
        digests: dict[str, bytes] = {}
        members: Members = {}
        mentions: dict[str, Mentions] = {}
        for part in gossip.omitted:
            digest = digests[part] = gossip.rolls[part]
            if part == MEMBERS:
                if digest not in self._members:
                    return None
                members = self._members[digest]
            elif part in own.mentions:
                if digest not in self._mentions[part]:
                    return None
                mentions[part] = self._mentions[part][digest]
        return Roll(digests, members, mentions, self._together(list(mentions.values())))

    def _together(self, mentions: list[Mentions]) -> Mentions:
        """All that is mentioned; mostly the same as the last time."""
        before, _ = self._merged
        if len(before) != len(mentions) or not all(map(is_, before, mentions)):
            self._merged = mentions, merged(mentions)
        return self._merged[1]

    def name(self, incarnation: str, digests: Mapping[str, bytes]) -> None:
        """Another site has named the parts of its roll."""
        self._named.pop(incarnation, None)
        self._named[incarnation] = digests
        if len(self._named) > _NAMED:
            del self._named[next(iter(self._named))]

    def shared(self, roll: Roll, reader: str | None) -> list[str]:
        """Return the parts that a reader has named the same, or has no use for: those can be left out."""
        named = self._named.get(reader, {}) if reader is not None else {}
        if MEMBERS not in named:
            return []
        return [
            part
            for part, digest in roll.digests.items()
            if named.get(part, b"" if part == MEMBERS else digest) == digest
        ]


def _keep(kept: dict[bytes, Any], digest: bytes, entries: Any) -> None:
    """Remember a part as the latest, and forget the oldest."""
    kept.pop(digest, None)
    kept[digest] = entries
    while len(kept) > _KEPT:
        del kept[next(iter(kept))]


def roll_of(state: State) -> Roll:
    """Return the roll of a site that knows this."""
    members = {
        (incarnation, stream, group): (held.length, held.sponsor)
        for incarnation, streams in sorted(state.members.items())
        for stream, groups in sorted(streams.items())
        for group, held in sorted(groups.items())
    }
    mentions: dict[str, dict[str, dict[str, Told]]] = {}
    for incarnation, wholes in sorted(state.known.items()):
        for whole in sorted(wholes) if incarnation not in state.expired else ():
            of_relation = mentions.setdefault(relation_of(whole), {})
            of_relation.setdefault(incarnation, {})[whole] = MENTIONED
    digests = {MEMBERS: _digest([(*member, *held) for member, held in members.items()])}
    for relation, known in sorted(mentions.items()):
        digests[relation] = _digest([(site, list(wholes)) for site, wholes in known.items()])
    sites = sorted(state.known.keys() - state.expired.keys())
    return Roll(digests, members, mentions, merged(mentions.values()), sites)


def merged(mentions: Iterable[Mentions]) -> Mentions:
    """All that is mentioned, of whichever relation."""
    found: dict[str, dict[str, Told]] = {}
    for of_relation in mentions:
        for site, wholes in of_relation.items():
            found.setdefault(site, {}).update(wholes)
    return found


def relation_of(whole: str) -> str:
    """The relation that a whole is about."""
    return whole.rpartition(">")[2]


def _digest(entries: list[Any]) -> bytes:
    """Short, for it is in every message; who would look for two of one name could as well lie in full."""
    return hashlib.blake2b(_ENCODER.encode(entries), digest_size=8).digest()
