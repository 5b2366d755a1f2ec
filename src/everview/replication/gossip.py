"""Gossip: a site's knowledge of members, to and from the form in which it travels.

All of it travels with every message, until there are so many members that this would be most of the work:
vectors grow with the square of their number. Then a message has the sender's own, those of a few others,
drawn anew each time, and the rest are mentioned: an empty vector and no reading say that a member is known.
What others have is needed to forget rows that are dead everywhere, an hour later at the earliest; that they
are known, to recognise rows of strangers, which is told with every message as before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from everview.replication.membership import Listed
from everview.replication.messages import START, Cursor, Gossip, Known, Member, Message
from everview.replication.state import State, Told, is_crowded

SHARE = 512
"""In a crowd, how many entries of others' vectors a message has; but always those of one other."""


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
    state: State,
    register: Register,
    groups: dict[str, list[str]],
    collected: dict[str, int],
    mentioned: Collection[str] = (),
) -> Gossip:
    """Return what travels of a site's knowledge, with the groups of what it serves."""
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
        if incarnation not in mentioned
        else Known(place(incarnation), whole, [], 0)
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


def mentioned(state: State, own: str, drawn: int) -> set[str]:
    """Those of whom only a mention travels, where not all fits: all but a few from a drawn one on."""
    if not is_crowded(state, own):
        return set()
    others = sorted(site for site in state.known if site != own and site not in state.expired)
    start, left = drawn % max(len(others), 1), SHARE
    for index in range(len(others)):
        site = others[(start + index) % len(others)]
        left -= sum(len(told.vector) for told in state.known[site].values())
        if left < 0 < index:
            return {others[(start + rest) % len(others)] for rest in range(index, len(others))}
    return set()


def members_in(message: Message) -> Iterator[Listed]:
    """The list of members that a message tells."""
    if message.gossip is not None:
        for member in message.gossip.members:
            sponsor = message.sites[member.sponsor] if member.sponsor >= 0 else ""
            yield message.sites[member.site], member.stream, member.group, member.length, sponsor


def known_in(message: Message) -> dict[str, dict[str, Told]]:
    """What a message tells of what each member has."""
    told: dict[str, dict[str, Told]] = {}
    for known in () if message.gossip is None else message.gossip.known:
        told.setdefault(message.sites[known.site], {})[known.whole] = _told(message, known)
    return told


def known_of_sender(message: Message) -> dict[str, Told]:
    """What the sender of a message has itself."""
    listed = () if message.gossip is None else message.gossip.known
    return {known.whole: _told(message, known) for known in listed if known.site == 0}


def _told(message: Message, known: Known) -> Told:
    pairs = zip(known.vector[::2], known.vector[1::2], strict=True)
    return Told({message.sites[place]: commit for place, commit in pairs}, known.reading)


def cursor_on(message: Message, incarnation: str) -> Cursor:
    """The sender's furthest cursor on a site."""
    if message.gossip is None or incarnation not in message.sites:
        return START
    return message.gossip.cursors.get(message.sites.index(incarnation), START)
