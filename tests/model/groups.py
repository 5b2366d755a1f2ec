"""Groups: who founds one, who joins, and what happens when two that were founded apart meet.

A relation's group is named by the incarnation that founded it; the group of a view is the groups of its
inputs. A fresh store is in no group. One that is asked by another such founds a group. When two groups meet,
the members of the one with the greater name leave it, one by one, and join the other like newcomers; a group
that has taken in members of another has absorbed its name.
"""

from tests.model.strangers import compare, together
from tests.model.views import VIEWS

from everview.algebra.lattices import VersionVector


class Groups:
    """The part of a site that knows to whom it belongs."""

    def start_groups(self):
        self.joined = set()  # the streams that may be served
        self.groups = {}  # stream → its group, while joined or provisional
        self.former = {}  # stream → the group it was in before
        self.bound = set()  # relations that must return to their former group, or to one that absorbed it
        self.absorbed = {}  # stream → the names that its group has absorbed, and those it was in itself
        self.apart = {}  # relation → its floor when its group was last found to have absorbed another
        self.lifted = {}  # relation that is not joined yet → how far its unseen tuples have been lifted
        self.founded = 0  # by this incarnation; one that was left is not founded again under its name
        self.provisional = {}  # stream → (sponsor, what its snapshot covers): joined, but for being listed
        self.collected_at = {}  # stream → the head when something of it was last forgotten
        self.gone_over = set()  # (incarnation, relation, group): it has left that one
        self.stays = {}  # (incarnation, relation) → group: it says itself that it is there, not elsewhere
        self.cancelled = {}  # group → a vector over what was forgotten of B there, by us or by whom we joined

    def group(self, stream):
        """The group of a stream that is held or computed here, or None."""
        if stream in self.circuits:
            inputs = VIEWS[stream].inputs
            return tuple(self.groups[i] for i in inputs) if self.joined.issuperset(inputs) else None
        return self.groups.get(stream)

    def component(self, what):
        """The group of a relation, as it is held whole or as a view receives it."""
        if isinstance(what, str):
            return self.groups.get(what)
        view, relation = what
        return self.groups[view][VIEWS[view].inputs.index(relation)]

    def forgotten_at(self, stream):
        parts = VIEWS[stream].inputs if stream in self.circuits else [stream]
        return max(self.collected_at.get(part, 0) for part in parts)

    # Founding.

    def found(self, stream):
        """Found a group for every relation that the stream needs and that is in none."""
        for relation in VIEWS[stream].inputs if stream in self.circuits else [stream]:
            if relation in self.bases and relation not in self.groups and self._is_free(relation):
                self._found(relation)
                self.world.count("founded")

    def _is_free(self, relation):
        """A store that must return may do as it likes if it knows of nobody else who has joined its group."""
        if relation not in self.bound or "return anywhere" in self.shortcuts:
            return True
        former = self.former[relation]
        return not any(
            holder in self.sponsors and holder[1:] == (relation, former) and length % 2
            for holder, length in self.members.items()
        )

    def _found(self, relation):
        """The new name is greater than the former one, and a stand-in for the former members is listed: until
        it is expired nothing is forgotten, and should they turn up, we return to them.
        """
        self.founded += 1
        name = f"{self.inc}/{self.founded}"
        if relation in self.former and "return anywhere" not in self.shortcuts:
            name = f"{self.former[relation]}/{name}"
            self.members[f"{self.former[relation]}?", relation, name] = 1
            self.bound.discard(relation)
        self.groups[relation] = name
        self.joined.add(relation)
        self.members[self.inc, relation, name] = 1
        self.sponsors[self.inc, relation, name] = self.inc

    # Leaving and returning.

    def leave(self, stream):
        """The old group keeps its entry for us: until its members have come after us, they forget nothing
        that we have not seen, for we carry it to others. How far we have read whom we go on to tell: by that
        a store which went back in time is recognised.
        """
        self.former[stream] = self.groups.pop(stream)
        self.absorbed.setdefault(stream, set()).add(self.former[stream])
        if self.provisional.pop(stream, None):  # it has no entry
            self.bound.add(stream)
            if stream in self.kinds and "guests vouch" not in self.shortcuts:
                self._forget_others(stream)
        self.joined.discard(stream)
        self.lifted.pop(stream, None)
        gone = {stream, None} if "leavers forget" in self.shortcuts else {stream}
        self.cursors = {key: at for key, at in self.cursors.items() if key[1] not in gone}
        self.stages.clear()
        self.world.count("left")
        if "leavers retire" in self.shortcuts:
            old = self.inc
            self.renew()
            self.bound.clear()
            self.expire(old)

    def _forget_others(self, relation):
        """A guest does not speak for those of its sponsor's group, who may forget without asking it."""
        self.known = {k: told for k, told in self.known.items() if k[0] == self.inc or k[1] != relation}
        self.agreed = {k: told for k, told in self.agreed.items() if k[0] == self.inc or k[1] != relation}

    def is_fed(self, view, group):
        """Whether somebody who is known here is left in the groups of all a view's inputs."""
        if group is None or "views wait" in self.shortcuts:  # ✗ None: sent before joining
            return True
        parts = list(zip(VIEWS[view].inputs, group, strict=True))
        return any(all(self._is_there(inc, *part) for part in parts) for inc in {h[0] for h in self.members})

    def _is_there(self, inc, relation, group):
        holder = (inc, relation, group)
        return self.members.get(holder, 0) % 2 and holder in self.sponsors and holder not in self.gone_over

    def note_gone_over(self, groups, absorbed, sender):
        """Who was in a view's group, and is in another that has absorbed that one, feeds it no longer.

        It says so itself; or the sender has it listed there, and it has not said since that it is back.
        """
        for view in self.received if "gone over stay" not in self.shortcuts else ():
            if view not in groups or groups[view] is None or view not in self.groups:
                continue
            for relation, ours, theirs in zip(
                VIEWS[view].inputs, self.groups[view], groups[view], strict=True
            ):
                self.gone_over.discard((sender, relation, theirs))
                self.stays.pop((sender, relation), None)
                if self._been_in(sender, relation) > {theirs}:
                    self.stays[sender, relation] = theirs
                if ours == theirs or ours not in absorbed.get(relation, ()):
                    continue
                self.gone_over.add((sender, relation, ours))
                if "hear it from them" not in self.shortcuts:
                    self.gone_over |= {
                        (inc, relation, ours)
                        for inc in {holder[0] for holder in self.sponsors}
                        if {ours, theirs} <= self._been_in(inc, relation)
                        and self.stays.get((inc, relation)) != ours
                    }

    def _been_in(self, inc, relation):
        """The groups that a site has joined, as far as it is known here."""
        return {group for one, stream, group in self.sponsors if (one, stream) == (inc, relation)}

    def leave_the_lost(self):
        """Nobody is left who could feed a view: it is in no group, and joins whichever is there next.

        Nothing is written where it is received, so there is nothing that it would have to return for; and who
        has come back founds no group before it is asked to, or one of a greater name.
        """
        for view in self.received:
            if view in self.groups and not self.is_fed(view, self.groups[view]):
                self.leave(view)
                self.bound.discard(view)

    def lose_groups(self):
        """A new incarnation is listed nowhere, and holds what others may have forgotten with its consent."""
        self.former |= self.groups
        self.bound |= self.groups.keys()
        for stream, name in self.groups.items():
            self.absorbed.setdefault(stream, set()).add(name)
        self.joined, self.groups, self.provisional, self.lifted = set(), {}, {}, {}

    def may_return(self, stream, page):
        """Whether this group may be joined: who must return goes to its former group, or where that went.

        A view goes to any where there is somebody to feed it.
        """
        if stream not in self.kinds:
            return self.is_fed(stream, page.groups.get(stream))
        if self._is_free(stream):
            return True
        former = self.former[stream]
        return former == page.groups.get(stream) or former in page.absorbed.get(stream, ())

    def settle(self, groups, told, sender, listed=None):
        """Leave what has met a smaller group; say whether some stream met a group that is not for it.

        Who has rows of a stranger goes to where that is known, whatever the names, also within its group; and
        nobody goes to one who has yet to come. If both have to, the names decide. Relations go together.

        For a file only what it lists us for, and has whole: we cannot ask again, and others may wait for us
        where we are. What is provisional goes wherever it will be listed, whatever the names: nobody waits
        for it where it is, and those whom it meets may never hear of that group, or wait for one who is
        behind it.
        """
        strange = False
        self.note_gone_over(groups, told.absorbed, sender)
        self.leave_the_lost()
        words = self._compare(groups, told, sender)
        for stream, theirs in groups.items():
            ours = self.groups.get(stream)
            if ours is None or "one group" in self.shortcuts:
                continue
            behind, ahead = words.get(stream, (False, False))
            if behind != ahead and (behind or theirs != ours):
                if behind and self._may_follow(stream, told.absorbed, listed):
                    self.leave(stream)
                else:
                    strange = True
                continue
            if theirs == ours:
                continue
            if stream in VIEWS and not self.is_fed(stream, theirs):
                strange = True
                continue
            if theirs < ours and "adopt the name" in self.shortcuts:
                self.groups[stream] = theirs
                self.members[self.inc, stream, theirs] = 1
            elif (theirs < ours and self._may_follow(stream, told.absorbed, listed)) or (
                self._is_loose(stream) and (listed is None or stream in listed)
            ):
                self.leave(stream)
                if (listed is None or stream in listed) and "guests stay" not in self.shortcuts:
                    self.bound.discard(stream)
            else:
                strange = True
        return strange

    def _compare(self, groups, told, sender):
        """Relation → whether we have to join anew from a sender, and it from us; one answer for all."""
        bases = [stream for stream in groups if stream in self.joined and stream in self.kinds]
        words = {s: compare(self, s, told, sender) for s in bases}
        return words if "one by one" in self.shortcuts else dict.fromkeys(words, together(words))

    def _may_follow(self, stream, absorbed, listed):
        if stream not in self.provisional:
            return listed is None or stream in listed or "wait in line" in self.shortcuts
        loose = stream in VIEWS and "guests wait" not in self.shortcuts
        return loose or self.groups[stream] in absorbed.get(stream, ())

    def _is_loose(self, stream):
        """Whether it waits to be listed where nobody has an entry for it, and goes where it has one."""
        return stream in self.provisional and ("guests wait" if stream in VIEWS else "guests stay") not in (
            self.shortcuts
        )

    def absorb(self, stream, told):
        """The names that a group has taken in travel with it; who comes over adds its own.

        With them come the floors of who brought them: up to there another group may have forgotten what is
        known here at shorter lengths.
        """
        known, names = self.absorbed.get(stream, set()), told.absorbed.get(stream, set())
        over = self.former.get(stream, told.groups.get(stream)) != told.groups.get(stream)
        if stream == "R" and (over or not names <= known):
            self.apart[stream] = max(self.floors[stream], told.floors[stream])
        self.absorbed[stream] = known | names

    def cancel(self, cancelled):
        """Pairs of the bag were forgotten, in these groups up to these vectors."""
        for group, vector in cancelled.items():
            self.cancelled[group] = self.cancelled.get(group, VersionVector.EMPTY) | vector

    def groups_of(self, inc, relation):
        """The groups that a site has joined, as far as it is known here."""
        return {group for who, stream, group in self.sponsors if (who, stream) == (inc, relation)}

    def is_elsewhere(self, inc, relation, group):
        return not self.groups_of(inc, relation) <= {group}

    def coming(self, streams, groups, told, sender):
        """Those of a site's streams that are in a greater group than ours, or in any, if it has to join anew
        from us: it waits to be listed.
        """
        words = {} if "listed by name" in self.shortcuts else self._compare(groups, told, sender)
        anew = {
            s for s, (behind, ahead) in words.items() if ahead and not behind and groups[s] != self.group(s)
        }
        return [
            s
            for s in streams
            if s in groups and self.group(s) is not None and (groups[s] > self.group(s) or s in anew)
        ]

    def enlist(self, inc, streams):
        """List who comes, under our group: before it is read for."""
        if inc in self.expired_at or inc == self.inc:
            return
        for stream in streams:
            group = self.group(stream)
            if group is not None and stream not in self.provisional:
                self.members.setdefault((inc, stream, group), 1)
