"""Groups: who joins which, and what happens when two that were founded apart meet.

The members of the one with the greater name leave it, one by one, and join the other like newcomers; a group
that has taken in members of another has absorbed its name. `tests/model/groups.py` is the specification.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from everview.language.limits import HIGHEST_FLOOR
from everview.replication.belonging import Belonging
from everview.replication.membership import covers, join
from everview.replication.messages import Cursor, Gossip, Request
from everview.replication.state import Provisional, Told
from everview.replication.strangers import Tells, compare, strangers

Joined = Mapping[str, list[str]]
"""Stream → its group, then the groups that this one has absorbed."""


@dataclass(slots=True)
class Groups(Belonging):
    """The part of a site that knows to whom it belongs, and whom it may join."""

    bags: Collection[str]
    """The relations that are bags."""

    # Meeting others.

    def settle(
        self, groups: Joined, told: Tells, sender: str, listed: Collection[str] | None = None
    ) -> tuple[set[str], set[str]]:
        """Leave what has met a smaller group; return the streams left, and those whose group is another.

        Who has rows of a stranger goes to where that is known, whatever the names, also within its group; and
        nobody goes to one who has yet to come. If both have to, the names decide. Relations go together. No
        view goes where nobody is left to feed it.

        Who cannot ask again at once, for the message is a file, leaves only what it is `listed` for there:
        others may wait for it where it is, and would wait for one that waits itself. A stream that waits to
        be listed goes wherever it will be, whatever the names: nobody has an entry for it where it is, and
        those whom it meets may never hear where its sponsor's group went, or wait for one who is behind it. A
        view, where nothing was written, goes after any file of a smaller group.
        """
        left: set[str] = self.leave_the_lost() if self.note_gone_over(groups, sender) else set()
        strange: set[str] = set()
        words = self.words(groups, told, sender)
        for stream, (theirs, *_) in groups.items():
            ours = self.group(stream) if stream in self.membership.wanted else None
            if ours is None:
                continue
            waits, is_listed = stream in self.state.provisional, listed is None or stream in listed
            behind, ahead = words.get(stream, (False, False))
            if theirs == ours and (ahead or not behind):
                continue
            if not self.membership.is_base(stream) and not self.is_fed(stream, theirs):
                strange.add(stream)
                continue
            if behind != ahead:
                follows = behind
            else:
                follows = self._went_into(stream, ours, groups) if waits else theirs < ours
                if waits:
                    is_view = not self.membership.is_base(stream)
                    follows = follows or is_listed or (is_view and theirs < ours)
            if follows and (waits or is_listed):
                self.leave(stream)
                left.add(stream)
                if is_listed:
                    self.state.bound.pop(stream, None)
            else:
                strange.add(stream)
        return left, strange

    def words(self, groups: Joined, told: Tells, sender: str) -> dict[str, tuple[bool, bool]]:
        """Relation → whether we have to join anew from a sender, which knows strangers of ours; it from us.

        That is one answer for all relations: a transaction writes to several, and would be seen in part if
        they came by two ways. What bags say comes first: of the others it does not matter who comes.
        """
        said = {
            relation: compare(self.membership, relation, told, sender, names)
            for relation, names in groups.items()
            if relation in self.state.joined and self.membership.is_base(relation)
        }
        bags = [word for relation, word in said.items() if relation in self.bags]
        decisive = bags if any(map(any, bags)) else list(said.values())
        word = any(behind for behind, _ in decisive), any(ahead for _, ahead in decisive)
        return dict.fromkeys(said, word)

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

    def is_founded_again(self, stream: str, gossip: Gossip) -> bool:
        """Whether the sender's group, or one that came to it, was founded by who had been in ours.

        It was in none then, and may have been put back to before what was forgotten in ours.
        """
        ours = filter(None, (self.state.former.get(stream), *self.state.absorbed.get(stream, ())))
        roots = tuple(f"{group}/" for group in ours)
        return any(name.startswith(roots) for name in gossip.groups.get(stream, ()))

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
        to its former group, or where that went; a view to any where somebody can feed it. One that has left
        its group waits for nobody: others may wait for it.
        """
        state = self.state
        if stream in gossip.provisional or stream not in gossip.groups:
            return False
        if not listed and stream in state.former and stream not in state.bound:
            return False
        if not self.membership.is_base(stream):
            if not self.is_fed(stream, gossip.groups[stream][0]):
                return False
        elif not self._is_free(stream) and not any(
            self._went_into(stream, name, gossip.groups) for name in self._former(stream)
        ):
            return False
        waits = state.provisional.get(stream)
        if waits is not None and waits.sponsor == sender:
            return start == 0 or gossip.collected.get(stream, 0) <= cursor.head
        return start == 0 and (waits is None or covers(has.vector, waits.covered))

    def join(
        self,
        stream: str,
        gossip: Gossip,
        sender: str,
        head: int,
        has: Told,
        *,
        listed: bool,
    ) -> None:
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

    def note_cancelled(self, bag: str, forgotten: Mapping[str, Mapping[str, int]]) -> None:
        """Take a cut from one who tells what was forgotten, by group: now that is forgotten here, too."""
        for group, vector in forgotten.items():
            join(self.state.cancelled.setdefault(bag, {}).setdefault(group, {}), vector)

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
        if HIGHEST_FLOOR >= floor > self.state.apart.get(relation, 0):
            self.state.apart[relation] = floor

    def strangers(self, *, joining: bool = False) -> dict[str, set[str]]:
        """Relation → writers of whom nothing is believed before it has joined anew.

        While it is `joining`, by a whole, that is asked only of what is joined already. Otherwise a copy that
        is in no group yet has rows of strangers, too: should it believe them, it could not tell later.
        """
        return {
            name: found
            for name in (self.state.joined if joining else self.membership.wanted)
            if self.membership.is_base(name) and (found := strangers(self.membership, name))
        }

    def coming(self, request: Request, gossip: Gossip | None, told: Tells, sender: str) -> Iterator[str]:
        """What a site holds and wants to join here, or will: it waits to be listed.

        So it will what it has in a greater group; or in any other, if it has to join anew from us. For a file
        it leaves only what it is listed for there.
        """
        groups = {} if gossip is None else {s: g for s, g in gossip.groups.items() if s in request.streams}
        apart = [s for s, (theirs, *_) in groups.items() if self.state.joined.get(s, theirs) != theirs]
        words = self.words(groups, told, sender) if apart else {}
        for stream in request.streams:
            ours, (theirs, *_) = self.group(stream), groups.get(stream, [""])
            anew = stream in apart and words.get(stream) == (False, True)
            if stream not in request.joined or (ours is not None and (theirs > ours or anew)):
                yield stream

    def enlist(self, incarnation: str, streams: Iterable[str]) -> None:
        """List who comes, under our group: before it is read for.

        Not who was given up; nor does a site list anybody that was given up itself, and is in no group any
        more once it has taken a new incarnation: it would then wait for who never was in its former one.
        """
        if incarnation in self.state.expired or incarnation == self.membership.incarnation:
            return
        if self.membership.is_expired():
            return
        for stream in streams:
            group = self.group(stream)
            if group is not None and stream not in self.state.provisional:
                self.membership.list_member(incarnation, stream, group)
