"""Who holds what, and what each is known to have: the ground on which garbage is collected (design: Garbage).

The list maps (incarnation, stream, group) to a causal length: odd while the member holds the stream. It
travels in every request and batch and joins by max; only entries of one's own group are asked. A site that
returns takes a new incarnation, so an even length is final. Vectors travel in the same batches: whoever knows
that a member has a death also knows everyone whom that member had sponsored before.
"""

from tests.model.ended import Ended
from tests.model.strangers import strangers
from tests.model.views import VIEWS

from everview.algebra.clock import Stamp
from everview.algebra.lattices import VersionVector


class Membership(Ended):
    """The part of a site that decides what is stable."""

    def start_membership(self):
        self.known = {}  # (incarnation, whole) → (vector, clock reading)
        self.agreed = {}  # (incarnation, whole) → the stamp that it knows all to have passed
        self.members = {}  # (incarnation, stream, group) → causal length
        self.sponsors = {}  # (incarnation, stream, group) → whose snapshot it joined from
        self.heard, self.expired_at, self.steps = {}, {}, 0
        self.start_ended()
        self.retired = set()  # own incarnations that are no more, whoever lists them

    def wholes(self):
        """What a vector is about: a relation held whole, or its liveness as a view shows it."""
        for stream in sorted(self.hosts):
            if stream in self.kinds:
                yield stream
            elif stream in self.received:
                yield from ((stream, relation) for relation in VIEWS[stream].inputs)

    def own(self, what):
        return self.known.get((self.inc, what)) or (VersionVector.EMPTY, Stamp(0, 0, self.inc))

    def holders(self, relation, group):
        """(incarnation, whole) of every member of a group of the relation that holds it, or derivations.

        And of those groups that it has absorbed: what came over from there the others there hold as well,
        and may take it to a third. Stand-ins are a concern of their own group only.
        """
        absorbed = self.absorbed.get(relation, ()) if "two ways" not in self.shortcuts else ()
        views = [
            v for v in VIEWS if relation in VIEWS[v].inputs and "views do not count" not in self.shortcuts
        ]
        for (inc, stream, theirs), length in self.members.items():
            came = theirs in absorbed and not inc.endswith("?")
            if length % 2 and stream == relation and (theirs == group or came):
                yield inc, relation
            elif length % 2 and stream in views and theirs[VIEWS[stream].inputs.index(relation)] == group:
                yield inc, (stream, relation)

    def stable(self, relation, group, dot):
        """A growth is stable when the vector of every member that holds its relation covers it."""
        if "collect at once" in self.shortcuts:
            return True
        return all(h in self.known and self.known[h][0].covers(*dot) for h in self.holders(relation, group))

    def passed(self, relation, group, stamp):
        """No member that holds the relation will ever again write below this stamp, nor will who joins.

        Every member knows that, so whoever has joined from one, and is not known here, has passed it too.
        """
        if {"ignore clocks", "collect at once"} & self.shortcuts:
            return True
        if "one reading" in self.shortcuts:
            return all(h in self.known and self.known[h][1] >= stamp for h in self.holders(relation, group))
        return all(h in self.agreed and self.agreed[h] >= stamp for h in self.holders(relation, group))

    def agree(self, relation, what, group):
        """Note what all members are known to have passed: who joins from here is moved past it."""
        holders = list(self.holders(relation, group))
        if all(holder in self.known for holder in holders):
            passed = min((self.known[holder][1] for holder in holders), default=self.own(what)[1])
            self.agreed[self.inc, what] = max(passed, self.agreed.get((self.inc, what), passed))

    def believe(self, told, agreed, apart=None):
        """Another member's vector and reading count only if one's own vector covers that vector.

        Then what is stable here has everything that its holders had, so that a row from before its death,
        arriving late, is recognised by its origin. A reading that came without the writes before it would
        let a delete be collected under them. Of a stranger nothing is believed before one has joined anew.

        Nor of who is not in the group: it may go to another, and forget there without asking us. Its word
        would make it known, and what a copy brings of it no stranger's.
        """
        if apart is None:
            apart = {relation: strangers(self, relation) for relation in self.bases}
        mine = {}
        for what in self.wholes():
            relation, first = (what, True) if isinstance(what, str) else (what[1], False)
            if relation not in self.hosts or first:
                mine.setdefault(relation, []).append(self.own(what)[0])
        for (inc, what), (vector, reading) in told.items():
            if inc == self.inc or inc in self.expired_at or inc in apart.get(what, ()):
                continue
            if "any word" not in self.shortcuts and what in self.bases and not self.is_with_us(inc, what):
                continue
            old, before = self.known.get((inc, what), (VersionVector.EMPTY, reading))
            passed = agreed.get((inc, what))
            known = passed is None or passed <= self.agreed.get((inc, what), Stamp(0, 0, inc))
            if old == vector and reading <= before and known and (inc, what) in self.known:
                continue
            ours = mine.get(what if isinstance(what, str) else what[1], ())
            if "believe all" in self.shortcuts or (ours and all(vector <= own for own in ours)):
                self.known[inc, what] = (old | vector, max(before, reading))
                if passed is not None:
                    self.agreed[inc, what] = max(passed, self.agreed.get((inc, what), passed))

    def is_with_us(self, inc, relation):
        """Whether a site is in our group, or in one that has come to it: only such are asked, and ask us."""
        ours = {self.groups.get(relation), *self.absorbed.get(relation, ())}
        return not ours.isdisjoint(self.groups_of(inc, relation))

    def meet(self, members, sponsors):
        """Join the list; expire whoever was first heard of after its sponsor had expired here.

        The sponsor's vector was what kept others from collecting under its guest; once it is expired and
        the guest unknown, they may have.
        """
        self.steps += 1
        for holder, length in members.items():
            self.heard.setdefault(holder, self.steps if self.is_ours(*holder[1:]) else 0)
            if length > self.members.get(holder, 0):
                self.members[holder] = length
                if length % 2 == 0:
                    self.end_of(holder[0])
        for inc in {**self.expired_at, **dict.fromkeys(self.retired)}:
            self.expire(inc)  # whatever it says it holds since
        self.sponsors.update(sponsors)
        while "orphans stay" not in self.shortcuts and self.expire_orphans():
            pass
        if self.inc in self.expired_at:
            self.renew()
        for stream, (sponsor, _) in list(self.provisional.items()):
            if sponsor in self.expired_at and stream in self.provisional:
                self.leave(stream)
        self.leave_the_lost()

    def is_ours(self, stream, group):
        """Whether we are in a group, of the stream or of a relation that it tells of.

        Nobody else can have forgotten anything under its guests; and a store that has retired its own
        incarnation would expire all whom that had sponsored, and all whom those sponsor when they return.
        """
        parts = zip(VIEWS[stream].inputs, group, strict=True) if stream in VIEWS else ()
        ours = {s: name for s, name in self.groups.items() if s in self.joined}
        return ours.get(stream) == group or any(ours.get(part) == name for part, name in parts)

    def expire_orphans(self):
        """An orphan never counted here: it is as if it had expired with its sponsor; so are its guests."""
        found = False
        for holder, sponsor in self.sponsors.items():
            since = self.expired_at.get(sponsor, self.steps)
            if since < self.heard.get(holder, 0) and holder[0] != self.inc:
                self.expire(holder[0])
                if self.expired_at.get(holder[0], since) > since:
                    self.expired_at[holder[0]] = since
                    found = True
        return found

    def retire(self, inc):
        """An incarnation of this store is over; others may have listed it without our knowing."""
        self.retired.add(inc)
        self.expire(inc)

    def expire(self, inc):
        """A member is gone, or stays away too long: it is no longer asked, and must join anew."""
        held = [h for h, length in self.members.items() if h[0] == inc and length % 2]
        if inc == self.inc or not held:
            return
        self.steps += 1
        self.end_of(inc)
        for holder in held:
            self.members[holder] += 1
