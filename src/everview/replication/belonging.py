"""Belonging: a site founds a group, leaves it, and knows which it is in.

A relation's group is named by the incarnation that founded it; the group of a view is those of its inputs. A
fresh store is in no group. One that is asked by another such founds one. `tests/model/groups.py` is the
specification.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from everview.engines.sqlite.stamps import microseconds
from everview.replication.membership import Membership, declined, groups_of
from everview.replication.messages import START
from everview.replication.state import State


@dataclass(slots=True)
class Belonging:
    """The part of a site that knows to whom it belongs."""

    membership: Membership
    inputs: Callable[[str], tuple[str, ...]]
    hidden: Collection[str]
    """The relations that are received and not shown: nothing is written to them here."""

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
        """Found a group for every relation that the streams need and that is in none.

        Not for a view of which not all relations are held: it is not given anyway, and who has just left the
        group of one for that of who asks would be in one of its own again, however often they meet. Nor for a
        relation that is hidden and has not come yet: whoever joined would be given nothing, and wait for who
        writes it to come there.
        """
        state = self.state
        for stream in streams:
            inputs = self.inputs(stream)
            if not all(map(self.membership.is_base, inputs)):
                continue
            for relation in inputs:
                has_come = relation not in self.hidden or relation in state.former
                if has_come and self.group(relation) is None and self._is_free(relation):
                    self._found(relation)
        state.joined = dict(sorted(state.joined.items()))

    def _is_free(self, relation: str) -> bool:
        """A store that must return may do as it likes if it knows of nobody else in its group.

        Or if it has looked for them in vain for as long as it takes to expire a member.
        """
        state = self.state
        since = state.bound.get(relation)
        if since is None or since < self.membership.now_us() - state.expiry_us:
            return True
        return not self._left_behind(relation)

    def _left_behind(self, relation: str) -> list[str]:
        """Those who are in the group that a store must return to, as far as it knows."""
        state = self.state
        former = state.former[relation]
        return [
            incarnation
            for incarnation, streams in state.members.items()
            for group, held in streams.get(relation, {}).items()
            if group == former and incarnation != self.membership.incarnation  # it may be listed, and waits
            if held.length % 2 and not declined(incarnation, group, held)
        ]

    def awaited(self) -> dict[str, list[str]]:
        """Stream → whom it has to meet before anything is exchanged with another group.

        That is the sponsor whose file did not list this site; or any member of the group to return to.
        """
        state = self.state
        found = {stream: [waits.sponsor] for stream, waits in state.provisional.items()}
        for stream in state.bound:
            held = stream in self.membership.wanted and self.membership.is_base(stream)
            if held and self.group(stream) is None and not self._is_free(stream):
                found[stream] = sorted(self._left_behind(stream))
        return dict(sorted(found.items()))

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
                group, streams = self.state.former[stream], self.state.members.get(incarnation, {})
                held = streams.get(stream, {}).get(group)
                if held is not None and not held.sponsor:
                    self.membership.hold(incarnation, stream, group, None)

    def decline(self) -> None:
        """Say of groups in which this site is listed, and never was, that it went elsewhere."""
        state, own = self.state, self.membership.incarnation
        for stream, groups in state.members.get(own, {}).items():
            waits = state.provisional.get(stream)
            ours = state.joined.get(stream) if waits is None else waits.group
            for group, held in groups.items():
                if held.sponsor or ours in (None, group) or group in state.absorbed.get(stream, ()):
                    continue
                self.membership.hold(own, stream, group, replace(held, sponsor=own))

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
            self._forget_others(stream)
        for sender, cursors in state.cursors.items():
            if stream in cursors:
                state.cursors[sender] = {name: one for name, one in cursors.items() if name != stream}
                before = state.once_read.get(sender, START)
                state.once_read[sender] = max(before, cursors[stream], key=lambda cursor: cursor.head)

    def _forget_others(self, relation: str) -> None:
        """A guest does not speak for those of its sponsor's group, who may forget without asking it.

        With their word from before, the rows that it brings would be no stranger's where it goes.
        """
        own = self.membership.incarnation
        self.state.known = {  # another one: who is known once is known for good (`Membership.unknown`)
            incarnation: {
                whole: one for whole, one in told.items() if own == incarnation or whole != relation
            }
            for incarnation, told in self.state.known.items()
        }

    def is_fed(self, view: str, group: str) -> bool:
        """Whether somebody who is known here is left in the groups of all a view's inputs."""
        inputs, names = self.inputs(view), group.split("+")
        return len(inputs) == len(names) and any(
            all(
                self.membership.lists(incarnation, relation, name)
                and name in groups_of(self.membership, incarnation, relation)
                and name not in self.state.gone_over.get(incarnation, {}).get(relation, ())
                for relation, name in zip(inputs, names, strict=True)
            )
            for incarnation in self.state.members
        )

    def note_gone_over(self, groups: Mapping[str, list[str]], sender: str) -> bool:
        """Who was in a view's group, and is in another that has absorbed that one, feeds it no longer.

        It says so itself; or the sender, which is in the other, has it listed there. Returns whether that is
        news. It goes on to be listed where it was, like all who have left: what it has not seen may not be
        forgotten. But where all have gone over a view would wait for nobody.
        """
        state, news = self.state, False
        for view in groups.keys() & self.membership.wanted.keys():
            ours, (theirs, *_) = self.group(view), groups[view]
            if self.membership.is_base(view) or ours is None:
                continue
            parts = zip(self.inputs(view), ours.split("+"), theirs.split("+"), strict=False)
            for relation, our, their in parts:
                self._note_stays(sender, relation, their)
                news |= self._note_left(sender, relation, their, left=False)
                if our == their or our not in groups.get(relation, [""])[1:]:
                    continue
                for incarnation in state.members:
                    stays = state.stays.get(incarnation, {}).get(relation) == our
                    both = {our, their} <= groups_of(self.membership, incarnation, relation)
                    if incarnation == sender or (both and not stays):
                        news |= self._note_left(incarnation, relation, our, left=True)
        return news

    def _note_stays(self, incarnation: str, relation: str, group: str) -> None:
        """What a site says of itself counts for more than what others have heard: it may have returned."""
        stays = dict(self.state.stays.pop(incarnation, {}))
        stays.pop(relation, None)
        if groups_of(self.membership, incarnation, relation) > {group}:
            stays[relation] = group
        if stays:
            self.state.stays[incarnation] = stays

    def _note_left(self, incarnation: str, relation: str, group: str, *, left: bool) -> bool:
        """Note that a site has left a group, or is there; return whether that is news."""
        gone = self.state.gone_over.get(incarnation, {})
        names = set(gone.get(relation, ()))
        if (group in names) == left:
            return False
        found = {**gone, relation: sorted(names ^ {group})}
        self.state.gone_over[incarnation] = {name: some for name, some in found.items() if some}
        if not self.state.gone_over[incarnation]:
            del self.state.gone_over[incarnation]
        return True

    def leave_the_lost(self) -> set[str]:
        """Leave every group in which nobody is left who could feed a view; return the views.

        Nothing is written where a view is received, so there is nothing that it would have to return for. Who
        has come back from there founds no group before it is asked to, or one of a greater name.
        """
        lost = {
            stream
            for stream in self.membership.wanted
            if not self.membership.is_base(stream)
            and (group := self.group(stream)) is not None
            and not self.is_fed(stream, group)
        }
        for view in sorted(lost):
            self.leave(view)
            self.state.bound.pop(view, None)
        return lost

    def lose_all(self) -> None:
        """A new incarnation is listed nowhere, and holds what others may have forgotten with its consent."""
        state = self.state
        waiting = {stream: waits.group for stream, waits in state.provisional.items()}
        for stream, group in {**waiting, **state.joined}.items():
            state.former[stream] = group
            state.bound.setdefault(stream, self.membership.now_us())
            self._absorb(stream, [group])
        state.joined, state.provisional, state.lifted = {}, {}, {}
        state.cursors, state.once_read = {}, {}

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
