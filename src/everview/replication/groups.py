"""Groups: who founds one, who joins, and what happens when two that were founded apart meet.

A relation's group is named by the incarnation that founded it; the group of a view is those of its inputs. A
fresh store is in no group. One that is asked by another such founds one. When two groups meet, the members of
the one with the greater name leave it, one by one, and join the other like newcomers; a group that has taken
in members of another has absorbed its name. `tests/model/groups.py` is the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from everview.engines.sqlite.stamps import microseconds
from everview.replication.membership import EXPIRY_US, Membership, covers, declined
from everview.replication.messages import LONGEST, Cursor, Gossip, Request
from everview.replication.state import Provisional, State, Told
from everview.replication.strangers import Tells, is_ahead, is_behind, strangers

Joined = Mapping[str, list[str]]
"""Stream → its group, then the groups that this one has absorbed."""


@dataclass(slots=True)
class Groups:
    """The part of a site that knows to whom it belongs."""

    membership: Membership
    inputs: Callable[[str], tuple[str, ...]]

    @property
    def state(self) -> State:
        """What the site knows."""
        return self.membership.state

    def group(self, stream: str) -> str | None:
        """The group of a stream that is held or computed here; of a view, those of its inputs."""
        state = self.state
        if stream in self.membership.wanted:
            waits = state.provisional.get(stream)
            return state.joined.get(stream) or (None if waits is None else waits.group)
        parts = [state.joined.get(name) for name in self.inputs(stream)]
        return None if None in parts or not parts else "+".join(part for part in parts if part)

    def served(self, streams: Iterable[str]) -> dict[str, list[str]]:
        """What is told of the groups of streams that are served."""
        found = {}
        for stream in streams:
            group = self.group(stream)
            if group is not None and stream not in self.state.provisional:
                found[stream] = [group, *self.state.absorbed.get(stream, ())]
        return found

    def forgotten_at(self, stream: str) -> int:
        """The commit at which something of a stream was last forgotten."""
        collected = self.state.collected
        parts = (stream,) if stream in self.membership.wanted else self.inputs(stream)
        return max((collected.get(part, 0) for part in parts), default=0)

    # Founding.

    def found(self, streams: Iterable[str]) -> None:
        """Found a group for every relation that the streams need and that is in none."""
        state = self.state
        for stream in streams:
            for relation in self.inputs(stream):
                held = self.membership.is_base(relation)
                if held and self.group(relation) is None and self._is_free(relation):
                    self._found(relation)
        state.joined = dict(sorted(state.joined.items()))

    def _is_free(self, relation: str) -> bool:
        """A store that must return may do as it likes if it knows of nobody else in its group.

        Or if it has looked for them in vain for as long as it takes to expire a member.
        """
        state = self.state
        since = state.bound.get(relation)
        if since is None or since < self.membership.now_us() - EXPIRY_US:
            return True
        former = state.former[relation]
        return not any(
            held.length % 2 and not declined(incarnation, group, held)
            for incarnation, streams in state.members.items()
            for group, held in streams.get(relation, {}).items()
            if group == former and incarnation != self.membership.incarnation  # it may be listed, and waits
        )

    def _found(self, relation: str) -> None:
        """Of a store that should return, or has only left, the new name is greater than the former one.

        And a stand-in for the former members is listed: until it is expired nothing is forgotten, and should
        they turn up, the store returns to them.
        """
        state, own = self.state, self.membership.incarnation
        state.founded += 1
        name = f"{own}/{state.founded}"
        former = state.former.get(relation)
        if former is not None:
            name = f"{former}/{name}"
            self.membership.list_member(f"{former}?", relation, name)
            state.bound.pop(relation, None)
        state.joined[relation] = name
        self.membership.list_member(own, relation, name, own)

    def strike(self, incarnation: str, streams: Iterable[str]) -> None:
        """A site says that it is in no group for these streams: where it is listed, it may never have joined.

        Then nobody has to return to where it was thought to be. Whose sponsor is known has joined, and has
        only just left.
        """
        for stream in streams:
            if stream in self.state.bound:
                groups = self.state.members.get(incarnation, {}).get(stream, {})
                held = groups.get(self.state.former[stream])
                if held is not None and not held.sponsor:
                    del groups[self.state.former[stream]]

    def decline(self) -> None:
        """Say of groups in which this site is listed, and never was, that it went elsewhere."""
        state, own = self.state, self.membership.incarnation
        for stream, groups in state.members.get(own, {}).items():
            ours = state.joined.get(stream)
            for group, held in groups.items():
                if ours not in (None, group) and group not in state.absorbed.get(stream, ()):
                    held.sponsor = held.sponsor or own

    # Leaving and returning.

    def leave(self, stream: str) -> None:
        """Leave a group for a smaller one.

        The old group keeps its entry for this site: until its members have come after it, they forget nothing
        that it has not seen, for it carries that to others.
        """
        state = self.state
        waits = state.provisional.pop(stream, None)
        former = state.joined.pop(stream, None) or (waits.group if waits is not None else "")
        state.former[stream] = former
        state.lifted.pop(stream, None)
        self._absorb(stream, [former])
        if waits is not None:  # it has no entry
            state.bound.setdefault(stream, self.membership.now_us())
        for cursors in state.cursors.values():
            cursors.pop(stream, None)

    def lose_all(self) -> None:
        """A new incarnation is listed nowhere, and holds what others may have forgotten with its consent."""
        state = self.state
        waiting = {stream: waits.group for stream, waits in state.provisional.items()}
        for stream, group in {**waiting, **state.joined}.items():
            state.former[stream] = group
            state.bound.setdefault(stream, self.membership.now_us())
            self._absorb(stream, [group])
        state.joined, state.provisional, state.cursors, state.lifted = {}, {}, {}, {}

    def lost_sponsors(self, since_us: int) -> list[str]:
        """Sponsors whose snapshot is older than this, and who have not listed this site yet."""
        found = []
        for waits in self.state.provisional.values():
            told = self.state.known.get(waits.sponsor, {}).values()
            if max((microseconds(one.reading) for one in told), default=0) < since_us:
                found.append(waits.sponsor)
        return found

    def lose_expired_sponsors(self) -> None:
        """Nobody will list this site any more where it waits for a sponsor that was given up."""
        for stream, waits in list(self.state.provisional.items()):
            if waits.sponsor in self.state.expired:
                self.leave(stream)

    def _absorb(self, stream: str, names: Iterable[str]) -> None:
        known = self.state.absorbed.get(stream, [])
        self.state.absorbed[stream] = sorted({*known, *names})

    def settle(
        self, groups: Joined, told: Tells, sender: str, listed: Collection[str] | None = None
    ) -> tuple[set[str], set[str]]:
        """Leave what has met a smaller group; return the streams left, and those whose group is another.

        Who has rows of a stranger goes to where that is known, whatever the names, also within its group; and
        nobody goes to one who has yet to come. If both have to, the names decide.

        Who cannot ask again at once, for the message is a file, leaves only what it is `listed` for there:
        others may wait for it where it is, and would wait for one that waits itself. A stream that waits to
        be listed follows only its own group, whatever name that goes by now.
        """
        left, strange = set(), set()
        for stream, (theirs, *_) in groups.items():
            ours = self.group(stream) if stream in self.membership.wanted else None
            if ours is None:
                continue
            waits = stream in self.state.provisional
            behind, ahead = self._compare(stream, groups[stream], told, sender)
            if theirs == ours and (ahead or not behind):
                continue
            if behind != ahead:
                follows = behind
            else:
                follows = self._went_into(stream, ours, groups) if waits else theirs < ours
            if follows and (waits or listed is None or stream in listed):
                self.leave(stream)
                left.add(stream)
            else:
                strange.add(stream)
        return left, strange

    def _compare(self, stream: str, groups: list[str], told: Tells, sender: str) -> tuple[bool, bool]:
        """Whether we have to join anew from a sender, for it knows a stranger of ours; and it from us."""
        if stream not in self.state.joined or not self.membership.is_base(stream):
            return False, False
        return (
            is_behind(self.membership, stream, told, sender),
            is_ahead(self.membership, stream, told, sender, groups),
        )

    def _went_into(self, stream: str, name: str, groups: Joined) -> bool:
        """Whether a group is the one told of, or has gone into it.

        A view that is computed there has its inputs' groups, and each may have absorbed others.
        """
        if name in groups[stream]:
            return True
        inputs, parts = self.inputs(stream), name.split("+")
        return len(inputs) == len(parts) and all(
            part in groups.get(relation, ()) for relation, part in zip(inputs, parts, strict=True)
        )

    def _former(self, stream: str) -> Iterator[str]:
        """The groups that a store may return to: its former one, and the one whose stand-in is listed there.

        While that is not expired nothing was forgotten in the group that was founded in its place.
        """
        name = self.state.former[stream]
        yield name
        while self.membership.lists(f"{(parent := name.rsplit('/', 2)[0])}?", stream, name):
            yield parent
            name = parent

    # Joining.

    def may_join(
        self,
        stream: str,
        gossip: Gossip,
        sender: str,
        start: int,
        cursor: Cursor,
        has: Told,
        *,
        listed: bool,
    ) -> bool:
        """Whether a stream in which the site is no member may be taken from this cut.

        It needs the whole, from 0, of a member; or goes on from the sponsor, if that has forgotten nothing
        since. The whole must not be older than what the site has from another sponsor, which may have
        forgotten since: then the old snapshot would bring back what is dead. A store that must return goes
        to its former group, or where that went. One that has left its group waits for nobody: others may
        wait for it.
        """
        state = self.state
        if stream in gossip.provisional or stream not in gossip.groups:
            return False
        if not listed and stream in state.former and stream not in state.bound:
            return False
        if not self._is_free(stream) and not any(
            self._went_into(stream, name, gossip.groups) for name in self._former(stream)
        ):
            return False
        waits = state.provisional.get(stream)
        if waits is not None and waits.sponsor == sender:
            return start == 0 or gossip.collected.get(stream, 0) <= cursor.head
        return start == 0 and (waits is None or covers(has.vector, waits.covered))

    def join(self, stream: str, gossip: Gossip, sender: str, head: int, has: Told, *, listed: bool) -> None:
        """A member, if the batch lists this site; else provisional, until one does."""
        state = self.state
        group, *absorbed = gossip.groups[stream]
        if absorbed or state.former.get(stream, group) != group:
            self._stand_apart(stream, gossip)
        state.former.pop(stream, None)
        state.bound.pop(stream, None)
        self._absorb(stream, absorbed)
        state.absorbed[stream] = [name for name in state.absorbed[stream] if name != group]
        if listed:
            state.lifted.pop(stream, None)
            state.joined[stream] = group
            state.provisional.pop(stream, None)
            state.collected[stream] = head
            self.membership.list_member(self.membership.incarnation, stream, group, sender)
        else:
            state.provisional[stream] = Provisional(sender, group, dict(has.vector))

    def absorb(self, stream: str, gossip: Gossip) -> None:
        """The names that a group has taken in travel with it; who comes over adds its own."""
        names = gossip.groups.get(stream, [""])[1:]
        if not set(names) <= set(self.state.absorbed.get(stream, ())):
            self._stand_apart(stream, gossip)
        self._absorb(stream, names)

    def absorb_all(self, gossip: Gossip) -> None:
        """Take in the names of groups that ours has taken in, as another member of it says."""
        for stream, (theirs, *_) in gossip.groups.items():
            if self.state.joined.get(stream) == theirs:
                self.absorb(stream, gossip)

    def _stand_apart(self, relation: str, gossip: Gossip) -> None:
        """Names come with the floors of who brought them: up to there another group may have forgotten."""
        floor = max(floors.get(relation, 0) for floors in (self.state.floors, gossip.floors))
        if LONGEST >= floor > self.state.apart.get(relation, 0):
            self.state.apart[relation] = floor

    def strangers(self) -> dict[str, set[str]]:
        """Relation that is joined → writers of whom nothing is believed before it has joined anew."""
        return {
            name: found
            for name in self.state.joined
            if self.membership.is_base(name) and (found := strangers(self.membership, name))
        }

    def coming(self, request: Request, gossip: Gossip | None) -> Iterator[str]:
        """What a site holds and wants to join here, or will: in a greater group it waits to be listed."""
        told = {} if gossip is None else gossip.groups
        for stream in request.streams:
            ours, (theirs, *_) = self.group(stream), told.get(stream, [""])
            if stream not in request.joined or (ours is not None and theirs > ours):
                yield stream

    def enlist(self, incarnation: str, streams: Iterable[str]) -> None:
        """List who comes, under our group: before it is read for."""
        if incarnation in self.state.expired or incarnation == self.membership.incarnation:
            return
        for stream in streams:
            group = self.group(stream)
            if group is not None and stream not in self.state.provisional:
                self.membership.list_member(incarnation, stream, group)
