"""Groups: who founds one, who joins, and what happens when two that were founded apart meet.

A stream's group is named by the incarnation that founded it; the group of a view is the groups of its
inputs. A fresh store is in no group. One that is asked by another such founds a group. When two groups meet,
the members of the one with the greater name leave it, one by one, and join the other like newcomers.
"""

from tests.model.views import VIEWS


class Groups:
    """The part of a site that knows to whom it belongs."""

    def start_groups(self):
        self.joined = set()  # the streams that may be served
        self.groups = {}  # stream → its group, while joined or provisional
        self.former = {}  # stream → the group it was in before
        self.founded = 0  # by this incarnation; one that was left is not founded again under its name
        self.provisional = {}  # stream → (sponsor, what its snapshot covers): joined, but for being listed
        self.collected_at = {}  # stream → the head when something of it was last forgotten

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

    def found(self, stream):
        """Found a group for every relation that the stream needs and that is in none."""
        inputs = VIEWS[stream].inputs if stream in self.circuits else [stream]
        for relation in inputs:
            if relation in self.bases and relation not in self.groups:
                self.founded += 1
                name = self.groups[relation] = f"{self.inc}/{self.founded}"
                self.joined.add(relation)
                self.members[self.inc, relation, name] = 1
                self.world.count("founded")

    def leave(self, stream):
        """A group with a smaller name was met. The old group keeps its entry for us: until its members have
        come after us, they forget nothing that we have not seen, for we may bring it to life elsewhere.
        """
        self.former[stream] = self.groups.pop(stream)
        self.joined.discard(stream)
        self.provisional.pop(stream, None)
        self.cursors = {key: at for key, at in self.cursors.items() if key[1] != stream}
        self.stages.clear()
        self.world.count("left")
        if "leavers retire" in self.shortcuts:
            old = self.inc
            self.renew()
            self.expire(old)

    def settle(self, groups):
        """Leave what has met a smaller group; say whether any stream met a greater one."""
        greater = False
        for stream, theirs in groups.items():
            ours = self.groups.get(stream)
            if ours is None or theirs == ours or "one group" in self.shortcuts:
                continue
            if theirs < ours and "adopt the name" in self.shortcuts:
                self.groups[stream] = theirs
                self.members[self.inc, stream, theirs] = 1
            elif theirs < ours:
                self.leave(stream)
            else:
                greater = True
        return greater

    def enlist(self, inc, streams):
        """List who wants to join, under our group: before it is read for."""
        if inc in self.expired_at or inc == self.inc:
            return
        for stream in streams:
            group = self.group(stream)
            if group is not None and stream not in self.provisional:
                self.members.setdefault((inc, stream, group), 1)
