"""Gossip: a site's knowledge of members, to and from the form in which it travels.

All of it travels with every message, until there are so many members that this would be most of the work:
vectors grow with the square of their number. Then a message has the sender's own, those of a few others, in
turn, and the rest are mentioned: an empty vector and no reading say that a member is known.
What others have is needed to forget rows that are dead everywhere, an hour later at the earliest; that they
are known, to recognise rows of strangers, which is told with every message as before: in its roll.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import msgspec

from everview.replication.groups import Groups
from everview.replication.membership import groups_of
from everview.replication.messages import START, Cursor, Gossip, Known, Member, Message
from everview.replication.rolls import MEMBERS, Members, Mentions, Roll, merged
from everview.replication.state import State, Told
from everview.replication.strangers import cancelled

PASSED = "^"
"""Ends the name of a whole for what a member knows all to have passed of it (`Told.passed`)."""

SHARE = 128
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

    def pairs(self, vector: Mapping[str, int]) -> list[int]:
        """A vector as it travels: the place of a site, its commit, and so on."""
        if not vector.keys() <= self._places.keys():
            new = [origin for origin in vector if origin not in self._places]
            self._places.update(zip(new, range(len(self.sites), len(self.sites) + len(new)), strict=True))
            self.sites += new
        pairs = [0] * (2 * len(vector))
        pairs[::2] = map(self._places.__getitem__, vector)
        pairs[1::2] = vector.values()
        return pairs


@dataclass(frozen=True, slots=True)
class Tidings:
    """What a message tells of members, whether in its own words or by the name of a roll."""

    members: Members
    known: Mapping[str, Mapping[str, Told]]
    """Incarnation → whole → what it has."""
    new_members: Members
    """Of the members those that may be news: none, if they are the reader's own."""
    new_known: Mapping[str, Mapping[str, Told]]
    """The same of what they have."""


def gossip_of(
    state: State,
    register: Register,
    groups: dict[str, list[str]],
    collected: dict[str, int],
    roll: Roll,
    full: Collection[str] | None = None,
    reader: str | None = None,
    omitted: Collection[str] = (),
) -> Gossip:
    """Return what travels of a site's knowledge, with the groups of what it serves.

    Of sites that are not among those told in `full` only a mention travels; of the parts of the roll that are
    `omitted` not even that. A reader needs to hear of the cursor on itself only; one that is not known yet,
    or finds a file, of all.
    """
    place = register.place
    members = [
        Member(place(incarnation), stream, group, length, place(sponsor) if sponsor else -1)
        for (incarnation, stream, group), (length, sponsor) in (
            () if MEMBERS in omitted else roll.members.items()
        )
    ]
    in_full = roll.known if full is None else [site for site in roll.known if site in full]
    known = [
        Known(
            place(incarnation),
            whole,
            register.pairs(told.vector),
            told.reading,
        )
        for incarnation in in_full
        for whole, told in sorted(state.known[incarnation].items())
    ]
    known += [
        Known(place(incarnation), f"{whole}{PASSED}", [], told.passed)
        for incarnation in in_full
        for whole, told in sorted(state.known[incarnation].items())
        if told.passed
    ]
    if len(in_full) < len(roll.known) and len(omitted) < len(roll.digests):
        known += [
            Known(place(incarnation), whole, [], 0)
            for relation, mentions in roll.mentions.items()
            if relation not in omitted
            for incarnation, wholes in mentions.items()
            if full is not None and incarnation not in full
            for whole in wholes
        ]
    read = {reader} if reader else state.cursors.keys() | (state.once_read.keys() - state.expired.keys())
    cursors = {
        place(sender): furthest
        for sender in sorted(read)
        if (furthest := furthest_cursor(state, sender)).head
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
        dict(roll.digests),
        list(omitted),
    )


def with_cancelled(gossip: Gossip, groups: Groups, register: Register, reader: str | None) -> Gossip:
    """Return gossip that also tells what was forgotten of bags; of the own group not to its members.

    There everyone has been asked. Of another, which came to this one, somebody may have rows by a store that
    was put back since, so that nobody was left there to ask for them.
    """
    told = [
        Known(0, cancelled(bag, group), register.pairs(vector), 0)
        for bag, by_group in sorted(groups.state.cancelled.items())
        for group, vector in sorted(by_group.items())
        if reader is None
        or group != groups.group(bag)
        or group not in groups_of(groups.membership, reader, bag)
    ]
    return msgspec.structs.replace(gossip, known=[*gossip.known, *told]) if told else gossip


def told_in_full(state: State, roll: Roll, own: str, after: str) -> list[str]:
    """Of which others all is told, where there are too many: a few, from the next after one on, in turn."""
    start, left = bisect_right(roll.known, after), SHARE
    found: list[str] = []
    for site in chain(islice(roll.known, start, None), islice(roll.known, start)):
        if site == own:
            continue
        left -= sum(len(told.vector) for told in state.known[site].values())
        if found and left < 0:
            break
        found.append(site)
    return found


def tidings_of(message: Message, left_out: Roll | None = None, own: Roll | None = None) -> Tidings:
    """What a message tells, with the parts of a roll that it leaves out; `own` is the reader's."""
    gossip, sites = message.gossip, message.sites
    if gossip is None:
        return Tidings({}, {}, {}, {})
    told: dict[str, dict[str, Told]] = {}
    for one in gossip.known:
        told.setdefault(sites[one.site], {})[one.whole] = _told(message, one)
    for wholes in told.values():
        for name in [name for name in wholes if name.endswith(PASSED)]:
            passed = wholes.pop(name).reading
            if (whole := wholes.get(name.removesuffix(PASSED))) is not None:
                whole.passed = passed
    members = _members(gossip, sites)
    if left_out is None or own is None:
        return Tidings(members, told, members, told)
    known = _over(left_out.mentioned, told)
    strange = [known for name, known in left_out.mentions.items() if known is not own.mentions[name]]
    news = _over(merged(strange), told) if strange else told
    if MEMBERS not in left_out.digests:
        return Tidings(members, known, members, news)
    same = left_out.members is own.members
    return Tidings(left_out.members, known, {} if same else left_out.members, news)


def _members(gossip: Gossip, sites: Sequence[str]) -> Members:
    """The members that a message lists itself."""
    return {
        (sites[member.site], member.stream, member.group): (
            member.length,
            sites[member.sponsor] if member.sponsor >= 0 else "",
        )
        for member in gossip.members
    }


def _over(mentioned: Mentions, told: Mentions) -> Mentions:
    """Who is mentioned, and over that what was told."""
    return {**mentioned, **{site: {**mentioned.get(site, {}), **wholes} for site, wholes in told.items()}}


def known_of_sender(message: Message) -> dict[str, Told]:
    """What the sender of a message has itself."""
    listed = () if message.gossip is None else message.gossip.known
    return {known.whole: _told(message, known) for known in listed if known.site == 0}


def commits_of(message: Message, incarnation: str) -> int:
    """The last commit of a site that the sender of a message has."""
    if message.gossip is None or incarnation not in message.sites:
        return 0
    place, found = message.sites.index(incarnation), 0
    for known in message.gossip.known:
        origins = known.vector[::2] if known.site == 0 else ()
        if place in origins:
            found = max(found, known.vector[2 * origins.index(place) + 1])
    return found


def _told(message: Message, known: Known) -> Told:
    origins = map(message.sites.__getitem__, known.vector[::2])
    return Told(dict(zip(origins, known.vector[1::2], strict=True)), known.reading)


def furthest_cursor(state: State, sender: str) -> Cursor:
    """How far a site was ever read: should it go back in time, it sees a tag there that it does not know."""
    cursors = (state.once_read.get(sender, START), *state.cursors.get(sender, {}).values())
    return max(cursors, key=lambda cursor: cursor.head)


def cursor_on(message: Message, incarnation: str) -> Cursor:
    """The sender's furthest cursor on a site."""
    if message.gossip is None or incarnation not in message.sites:
        return START
    return message.gossip.cursors.get(message.sites.index(incarnation), START)
