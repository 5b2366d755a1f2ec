"""Who holds what, and what each is known to have: the ground on which garbage is collected.

The rules are those of docs/REPLICATION.md, and `tests/model/membership.py` is their specification. The list
of members maps (incarnation, stream, group) to a causal length, odd while the member holds the stream. A
group is named by the site that founded it; of two groups that meet, members of the greater join the smaller.
The list travels in every message and joins by max. A site that returns takes a new incarnation, so an even
length is final. Vectors travel in the same batches: whoever knows that a member has a death also knows
everyone whom that member had sponsored before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from msgspec.structs import replace

from everview.engines.sqlite.stamps import microseconds
from everview.engines.sqlite.streams import wholes_of
from everview.language.limits import MOST_TOLD
from everview.replication.messages import Message
from everview.replication.rolls import Listed
from everview.replication.state import DAY_US, Holding, State, Told

Inputs = Callable[[str], tuple[str, ...]]
"""Stream → the base relations it tells of; nothing for a stream that the program does not have."""


@dataclass(slots=True)
class Membership:
    """The part of a site that decides what is stable; `state` is what it has to go by."""

    state: State
    incarnation: str
    wanted: Mapping[str, tuple[str, ...]]
    """The streams this site holds → their inputs."""
    inputs: Inputs
    now_us: Callable[[], int]
    _known: Mapping[str, Mapping[str, Told]] | None = None
    _met: dict[str, set[str]] = field(default_factory=dict)
    """Relation → those of whom something of it is known, among those that were asked for."""

    # What this site has.

    def wholes(self) -> Iterator[tuple[str, str]]:
        """What vectors are about here: (whole, relation)."""
        for stream, inputs in self.wanted.items():
            yield from zip(wholes_of(stream, inputs), inputs, strict=True)

    def is_base(self, stream: str) -> bool:
        """Whether a stream is a relation, held whole."""
        return self.wanted.get(stream) == (stream,)

    def own(self, whole: str) -> Told:
        """What this site has of a whole."""
        mine = self.state.known.setdefault(self.incarnation, {})
        return mine.setdefault(whole, Told({}))

    def unknown(self, relation: str, writers: AbstractSet[str]) -> AbstractSet[str]:
        """Of these writers those of whom nothing is known; who is known once is known for good."""
        if self._known is not self.state.known:  # a new incarnation knows nobody
            self._known, self._met = self.state.known, {}
        met = self._met.setdefault(relation, set())
        unknown = writers - met
        if unknown:
            met.update(writer for writer in unknown if relation in self.state.known.get(writer, ()))
        return unknown - met

    def advance(self, head: int, reading: int) -> None:
        """A commit: only a relation held whole has all that is written here.

        The liveness that a view receives comes back by its cuts.
        """
        for whole, relation in self.wholes():
            told = self.own(whole)
            told.reading = max(told.reading, reading)
            if whole == relation:
                told.vector[self.incarnation] = head
        for whole, relation in self._former():
            told = self.own(whole)
            told.reading = max(told.reading, reading)
            if self.is_base(relation):
                join(told.vector, self.own(relation).vector)
                told.passed = max(told.passed, self.own(relation).passed)
            else:
                told.passed = max(told.passed, reading)  # nobody joins from here

    def _former(self) -> Iterator[tuple[str, str]]:
        """(whole, relation) of views that were received, and are computed now, or were given up.

        Of the first the site has what its relations have. Of the others it has nothing, so whatever others
        have it need not be asked for (see `release`).
        """
        for stream in self.state.members.get(self.incarnation, {}):
            if stream not in self.wanted:
                inputs = self.inputs(stream)
                yield from zip(wholes_of(stream, inputs), inputs, strict=True)

    def release(self, told: Mapping[str, Told]) -> None:
        """Say of views that were given up that all is there which a sender has: none of it is held here."""
        for whole, relation in self._former():
            if not self.is_base(relation):
                for vector in _of_relation(told, relation):
                    join(self.own(whole).vector, vector)

    # Members.

    def list_member(self, incarnation: str, stream: str, group: str, sponsor: str = "") -> bool:
        """Enter a site into the list of a group; return whether it was not there yet.

        Whoever listed it does not know whether it will join from there, so its sponsor may come later.
        """
        held = self._held(incarnation, stream, group)
        if held is not None:
            if sponsor and (not held.sponsor or declined(incarnation, group, held)):
                self.hold(incarnation, stream, group, replace(held, sponsor=sponsor))
            return False
        self.state.steps += 1
        new = Holding(1, sponsor, self._heard(stream, group), self.now_us())
        self.hold(incarnation, stream, group, new)
        return True

    def hold(self, incarnation: str, stream: str, group: str, holding: Holding | None) -> None:
        """Enter into the list what a site holds in a group, or that it is not in it."""
        streams = self.state.members.get(incarnation, {})
        groups = {name: held for name, held in streams.get(stream, {}).items() if name != group}
        if holding is not None:
            groups[group] = holding
        self.state.members[incarnation] = {**streams, stream: groups}

    def _held(self, incarnation: str, stream: str, group: str) -> Holding | None:
        return self.state.members.get(incarnation, {}).get(stream, {}).get(group)

    def _heard(self, stream: str, group: str) -> int:
        """The present step, for who is heard of now; 0 if this site can have forgotten nothing under it.

        That needs a member of the same group, of the stream or of a relation that it tells of. Who joins by a
        snapshot later on need not judge: what was forgotten before is for the others to say.
        """
        joined = self.state.joined
        parts = zip(self.inputs(stream), group.split("+"), strict=False)
        counts = joined.get(stream) == group or any(joined.get(part) == name for part, name in parts)
        return self.state.steps if counts else 0

    def lists(self, incarnation: str, stream: str, group: str) -> bool:
        """Whether a site is listed as holding a stream in a group."""
        held = self._held(incarnation, stream, group)
        return held is not None and held.length % 2 == 1

    def holders(self, whole: str) -> Iterator[tuple[str, str]]:
        """(incarnation, whole) of every member of our group that holds a relation, or derivations from it.

        Our group is that of a whole here: of the relation itself, or as a view receives it.
        """
        relation, ours = whole.rpartition(">")[2], self._group(whole)
        for incarnation, streams in self.state.members.items():
            for stream, groups in streams.items():
                inputs = self.inputs(stream)
                if relation not in inputs and (inputs or "#" not in stream):
                    continue  # of a view that nobody has explained anything may be held
                theirs = relation if inputs == (stream,) else f"{stream}>{relation}"
                if any(self._concerns(incarnation, theirs, name, h, ours) for name, h in groups.items()):
                    yield incarnation, theirs

    def _group(self, whole: str) -> str | None:
        """The group that a relation is in here, be it held whole or received by a view; or None."""
        view, _, relation = whole.rpartition(">")
        group = self.state.joined.get(view or relation)
        return None if group is None else self._part(whole, group)

    def _part(self, whole: str, group: str) -> str | None:
        """Of the groups of a view's inputs that of the relation; None if nobody has explained the view."""
        view, _, relation = whole.rpartition(">")
        return dict(zip(self.inputs(view), group.split("+"), strict=False)).get(relation) if view else group

    def _concerns(self, incarnation: str, whole: str, group: str, held: Holding, ours: str | None) -> bool:
        """Whether a holding counts in our group of a relation: one in another is that group's concern.

        Unless that has come to ours in part: what came over others there hold as well, and may take it to a
        third group. Not so views: one that comes over starts empty. A stand-in is a concern of its own group
        only. A site that is in none cannot tell, and counts all.
        """
        if held.length % 2 == 0:
            return False
        if ours is None or self._part(whole, group) in (ours, None):
            return True
        absorbed = ">" not in whole and group in self.state.absorbed.get(whole, ())
        return absorbed and not incarnation.endswith("?") and not declined(incarnation, group, held)

    def agree(self, relation: str) -> None:
        """Note what all members are known to have passed; who joins from here is moved past it."""
        for whole, about in self.wholes():
            if about == relation and self._group(whole) is not None:
                told = self.own(whole)
                passed = min((self._reading(*holder) for holder in self.holders(whole)), default=0)
                told.passed = max(told.passed, passed)

    def _reading(self, incarnation: str, whole: str) -> int:
        told = self.state.known.get(incarnation, {}).get(whole)
        return 0 if told is None else told.reading

    def stable(self, whole: str) -> tuple[dict[str, int], int]:
        """The vector that every member of our group of a whole covers; and a stamp that all have passed.

        And that every member knows so: then who has joined from one, and is not known here, has passed it.
        """
        vector: dict[str, int] | None = None
        passed: int | None = None
        for incarnation, theirs in self.holders(whole):
            told = self.state.known.get(incarnation, {}).get(theirs)
            if told is None:
                return {}, 0
            has = told.vector
            if vector is None:
                vector = dict(has)
            else:
                vector = {i: min(n, has[i]) for i, n in vector.items() if i in has}
            passed = told.passed if passed is None else min(passed, told.passed)
        return vector or {}, passed or 0

    def believe(
        self,
        told: Mapping[str, Mapping[str, Told]],
        sender: str,
        strangers: Mapping[str, set[str]] | None = None,
    ) -> bool:
        """Take note of what other members have, but for strangers; return whether a vector grew.

        Another member's vector and reading count only if one's own vector covers that vector. Then what is
        stable here has everything that its holders had, so that a row from before its death, arriving late,
        is recognised by its origin. A reading that came without the writes before it would let a delete be
        collected under them.

        Of who has not joined our group nothing counts: it may go to another, or be copied, and forget without
        asking us. Its word from before would make it known, and its rows, when a copy brings them, no
        stranger's.

        A member that is only mentioned (see `gossip`) has what the sender has of its relation, or less. So it
        is heard of when all that is here.
        """
        mine: dict[str, list[dict[str, int]]] = {}
        for whole, relation in self.wholes():
            if whole == relation or (relation,) != self.wanted.get(relation):
                mine.setdefault(relation, []).append(self.own(whole).vector)
        grew = False
        for incarnation, wholes in told.items():
            if incarnation == self.incarnation or incarnation in self.state.expired:
                continue
            before = self.state.known.get(incarnation, {})
            for whole, theirs in wholes.items():
                mention = not theirs.vector and not theirs.reading
                if mention and whole in before:
                    continue
                if strangers and incarnation in strangers.get(whole, ()):
                    continue
                if self.is_base(whole) and not self._is_with_us(incarnation, whole):
                    continue
                ours = mine.get(whole.rpartition(">")[2], ())
                meant = _of_relation(told.get(sender, {}), whole) if mention else [theirs.vector]
                if not ours or not meant or not all(covers(own, vector) for own in ours for vector in meant):
                    continue
                held = self.state.known.setdefault(incarnation, {}).get(whole)
                if held is None:
                    told_now = Told(dict(theirs.vector), theirs.reading, theirs.passed)
                    self.state.known[incarnation][whole] = told_now
                    grew = True
                    continue
                grew |= join(held.vector, theirs.vector)
                held.reading = max(held.reading, theirs.reading)
                held.passed = max(held.passed, theirs.passed)
        return grew

    def _is_with_us(self, incarnation: str, relation: str) -> bool:
        """Whether a site has joined our group, or one that has come to it: they are asked, and ask us."""
        state, waits = self.state, self.state.provisional.get(relation)
        ours = {state.joined.get(relation) if waits is None else waits.group}
        ours.update(state.absorbed.get(relation, ()))
        return not ours.isdisjoint(groups_of(self, incarnation, relation))

    def has_room(self, message: Message) -> bool:
        """Whether those whom a message lists can be told on, with all that are listed here."""
        listed = () if message.gossip is None else message.gossip.members
        new = [one for one in listed if message.sites[one.site] not in self.state.members]
        if not new:
            return True
        told = sum(
            len(message.sites[one.site]) + len(message.names[one.site]) + len(one.stream) + len(one.group)
            for one in new
        )
        for incarnation, streams in self.state.members.items():
            told += len(incarnation) + len(self.state.names.get(incarnation, ""))
            told += sum(len(stream) + len(group) for stream, groups in streams.items() for group in groups)
        return told <= MOST_TOLD

    def meet(self, members: Mapping[Listed, tuple[int, str]]) -> bool:
        """Join a list of members; return whether it was news.

        Whoever was first heard of by a member after its sponsor had expired here is expired too: the
        sponsor's vector was what kept others from collecting under its guest, and once it is expired and the
        guest unknown they may have.
        """
        state = self.state
        state.steps += 1
        news = False
        for (incarnation, stream, group), (length, sponsor) in members.items():
            before = held = self._held(incarnation, stream, group)
            if held is None:
                held = Holding(0, heard=self._heard(stream, group), listed_us=self.now_us())
            if length > held.length:
                held = replace(held, length=length)
                news = True
                if length % 2 == 0 and incarnation != self.incarnation:
                    self.end(incarnation)
            if sponsor not in ("", held.sponsor) and (not held.sponsor or declined(incarnation, group, held)):
                held = replace(held, sponsor=sponsor)
                news = True
            if held is not before:
                self.hold(incarnation, stream, group, held)
        for incarnation in list(state.expired):
            news |= self.expire(incarnation)  # whatever it says it holds since
        while self._expire_orphans():
            news = True
        if not news:
            state.steps -= 1
        return news

    def _expire_orphans(self) -> bool:
        """Expire who was heard of after its sponsor was given up; return whether there was one.

        An orphan never counted here, so it is as if it had expired with its sponsor: the guests that it has
        brought along are orphans, too.
        """
        expired, found = self.state.expired, False
        if not expired:
            return False
        for incarnation in list(self.state.members):
            since = [
                expired[held.sponsor]
                for held in self._holdings(incarnation)
                if expired.get(held.sponsor, self.state.steps) < held.heard
            ]
            if since and incarnation != self.incarnation:
                found |= self.expire(incarnation)
                if expired.get(incarnation, self.state.steps) > min(since):
                    expired[incarnation] = min(since)
                    found = True
        return found

    def _holdings(self, incarnation: str) -> list[Holding]:
        streams = self.state.members.get(incarnation, {})
        return [held for groups in streams.values() for held in groups.values()]

    def is_expired(self) -> bool:
        """Whether others have given this incarnation up."""
        return any(held.length % 2 == 0 for held in self._holdings(self.incarnation))

    def expire(self, incarnation: str) -> bool:
        """A member is gone, or stays away too long: it is no longer asked, and must join anew."""
        if incarnation == self.incarnation or not any(h.length % 2 for h in self._holdings(incarnation)):
            return False
        self.end(incarnation)
        self.state.members[incarnation] = {
            stream: {group: replace(h, length=h.length + h.length % 2) for group, h in groups.items()}
            for stream, groups in self.state.members[incarnation].items()
        }
        return True

    def end(self, incarnation: str) -> None:
        """Note that a site is over. It may be the one that had what views have: they are looked at anew."""
        if incarnation not in self.state.expired:
            self.state.expired[incarnation] = self.state.steps
            self.state.settled = []

    def tell_expired(self, incarnation: str) -> None:
        """Enter a site that was given up, should it be in no list: else it would never learn why."""
        if not self._holdings(incarnation):
            for stream in self.wanted:
                self.hold(incarnation, stream, "", Holding(2))

    def note_met(self, incarnation: str) -> None:
        """A site has spoken here itself.

        What it says of its clock is believed only with all that it has. Where it may not give that, or this
        site may not take it, the two talk every day, and it would be given up, for everybody, as one who
        stays away. A day is as fine as it need be, and is noted only where nothing else tells as much.
        """
        state, now = self.state, self.now_us()
        if incarnation in state.members and self._heard_us(incarnation) < now - DAY_US:
            state.met[incarnation] = now - now % DAY_US + DAY_US

    def absent(self, since_us: int) -> list[str]:
        """Members of whom nothing newer than this was heard.

        None, if it was heard of nobody at all: then it is this site that was away.
        """
        state = self.state
        state.met = {one: us for one, us in state.met.items() if us >= since_us and one not in state.expired}
        found, heard = [], False
        for incarnation in state.members:
            if incarnation == self.incarnation or not any(h.length % 2 for h in self._holdings(incarnation)):
                continue
            listed = max(held.listed_us for held in self._holdings(incarnation))
            if max(self._heard_us(incarnation) or listed, state.met.get(incarnation, 0)) < since_us:
                found.append(incarnation)
            else:
                heard = True
        return found if heard else []

    def _heard_us(self, incarnation: str) -> int:
        """The time of its clock that a member is believed to have told; 0 if there is none."""
        told = self.state.known.get(incarnation, {}).values()
        return max((microseconds(one.reading) for one in told), default=0)


def groups_of(membership: Membership, writer: str, relation: str) -> set[str]:
    """The groups that a site has joined, as far as it is known here."""
    held = membership.state.members.get(writer, {}).get(relation, {})
    return {group for group, one in held.items() if one.sponsor and not declined(writer, group, one)}


def declined(incarnation: str, group: str, held: Holding) -> bool:
    """Whether a site is listed in a group and went elsewhere: it sponsors itself, and did not found it."""
    founders = (part.rsplit("/", 2) for part in group.split("+"))
    return held.sponsor == incarnation and all(names[-2:-1] != [incarnation] for names in founders)


def _of_relation(told: Mapping[str, Told], whole: str) -> list[dict[str, int]]:
    """What a site has of the relation that a whole is about."""
    relation = whole.rpartition(">")[2]
    return [one.vector for name, one in told.items() if name.rpartition(">")[2] == relation]


def covers(mine: Mapping[str, int], theirs: Mapping[str, int]) -> bool:
    """Whether the first vector has all that the second has."""
    found = mine.get
    for origin, commit in theirs.items():  # noqa: SIM110 - it is asked for every message, of every member
        if found(origin, 0) < commit:
            return False
    return True


def join(mine: dict[str, int], theirs: Mapping[str, int]) -> bool:
    """Raise a vector to another; return whether it grew."""
    grew, found = False, mine.get
    for origin, commit in theirs.items():
        if commit > found(origin, 0):
            mine[origin] = commit
            grew = True
    return grew
