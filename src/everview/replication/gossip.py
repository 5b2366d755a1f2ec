"""Gossip: a site's knowledge of members, to and from the form in which it travels."""

from __future__ import annotations

from collections.abc import Iterator

from everview.replication.membership import Listed
from everview.replication.messages import START, Cursor, Gossip, Known, Member, Message
from everview.replication.state import State, Told


class Register:
    """The sites that a message names, each once; the first is its sender."""

    def __init__(self, incarnation: str) -> None:
        self.sites = [incarnation]
        self._places = {incarnation: 0}

    def place(self, incarnation: str) -> int:
        """Return where a site stands, entering it if need be."""
        found = self._places.get(incarnation)
        if found is None:
            found = self._places[incarnation] = len(self.sites)
            self.sites.append(incarnation)
        return found


def gossip_of(
    state: State, register: Register, groups: dict[str, list[str]], collected: dict[str, int]
) -> Gossip:
    """Return all that travels of a site's knowledge, with the groups of what it serves."""
    place = register.place
    members = [
        Member(place(incarnation), stream, group, held.length, place(held.sponsor) if held.sponsor else -1)
        for incarnation, streams in sorted(state.members.items())
        for stream, groups in sorted(streams.items())
        for group, held in sorted(groups.items())
    ]
    known = [
        Known(
            place(incarnation),
            whole,
            [n for origin, commit in sorted(told.vector.items()) for n in (place(origin), commit)],
            told.reading,
        )
        for incarnation, wholes in sorted(state.known.items())
        if incarnation not in state.expired
        for whole, told in sorted(wholes.items())
    ]
    cursors = {
        place(sender): max(streams.values(), key=lambda cursor: cursor.head)
        for sender, streams in sorted(state.cursors.items())
        if streams
    }
    provisional = {
        stream: state.cursors.get(waits.sponsor, {}).get(stream, START)
        for stream, waits in sorted(state.provisional.items())
    }
    return Gossip(
        members,
        known,
        dict(sorted(state.floors.items())),
        cursors,
        groups,
        collected,
        provisional,
    )


def members_in(message: Message) -> Iterator[Listed]:
    """The list of members that a message tells."""
    if message.gossip is not None:
        for member in message.gossip.members:
            sponsor = message.sites[member.sponsor] if member.sponsor >= 0 else ""
            yield message.sites[member.site], member.stream, member.group, member.length, sponsor


def known_in(message: Message) -> dict[str, dict[str, Told]]:
    """What a message tells of what each member has."""
    told: dict[str, dict[str, Told]] = {}
    if message.gossip is not None:
        for known in message.gossip.known:
            pairs = zip(known.vector[::2], known.vector[1::2], strict=True)
            vector = {message.sites[place]: commit for place, commit in pairs}
            told.setdefault(message.sites[known.site], {})[known.whole] = Told(vector, known.reading)
    return told


def cursor_on(message: Message, incarnation: str) -> Cursor:
    """The sender's furthest cursor on a site."""
    if message.gossip is None or incarnation not in message.sites:
        return START
    return message.gossip.cursors.get(message.sites.index(incarnation), START)
