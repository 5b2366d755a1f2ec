"""The real code of located rules, each time with one rule left out."""

from everview.located.counting import CountingPlace
from everview.located.counting_node import CountingNode
from everview.located.provenance import ProvenancePlace
from everview.located.provenance_node import ProvenanceNode


def no_revival(patch):
    """What an id makes live again is not shown, and does not fire."""
    patch(ProvenancePlace, "_revive", lambda *_: None)


def revival_shown_only(patch):
    """What an id makes live again is shown, and does not fire."""
    patch(ProvenancePlace, "_revive", lambda self, fact, _: self._show(fact))


def dead_not_kept(patch):
    """A derivation that is dead on arrival is dropped."""
    derive = ProvenancePlace._derive

    def careless(self, fact, mask, rule):
        if self._is_live(mask) or fact[0] in self._rules.base:
            derive(self, fact, mask, rule)

    patch(ProvenancePlace, "_derive", careless)


def lengths_told_once(patch):
    """Lengths travel with derivations, and not when they grow."""
    tell = ProvenancePlace._tell

    def once(self, to, channel, bit):
        if bit not in channel.lengths:
            tell(self, to, channel, bit)

    patch(ProvenancePlace, "_tell", once)


def last_length_counts(patch):
    """Of two lengths the one that came last counts."""
    grow = ProvenancePlace._grow

    def shrink(self, bit, length, place):
        if place != self.place and 0 < length < self._lengths.get(bit, 0):
            self._lengths[bit] = length - 1
            self._live &= ~(1 << bit)
        grow(self, bit, length, place)

    patch(ProvenancePlace, "_grow", shrink)


def own_lengths_taken(patch):
    """A place that went back takes what others know of its facts for the truth."""
    grow = ProvenancePlace._grow

    def believe(self, bit, length, place):
        if place == self.place and length > self._lengths.get(bit, 0):
            (self._written.add if length % 2 else self._written.discard)(bit)
        grow(self, bit, length, place)

    patch(ProvenancePlace, "_grow", believe)


def forgotten_for_good(patch):
    """That another has forgotten a derivation is no news."""
    patch(ProvenancePlace, "counts_on", lambda *_: False)


def live_forgotten(patch):
    """The live is forgotten, too, and not noticed."""
    patch(ProvenancePlace, "counts_on", lambda *_: False)
    patch(ProvenancePlace, "stale", lambda self: frozenset(self._ids[:1]))


def mail_not_read(patch):
    """A node that is opened knows its base facts, and nothing that it was sent."""
    rebuild = ProvenanceNode._rebuild

    def forgetful(self):
        boxes, self._boxes = self._boxes, {}
        try:
            rebuild(self)
        finally:
            self._boxes = boxes

    patch(ProvenanceNode, "_rebuild", forgetful)


def counted_twice(patch):
    """An update that arrives counts twice."""
    run = CountingPlace.run

    def twice(self, arrived=()):
        offered = list(arrived)
        moves = run(self, offered + [update for update in offered[:1] if update.sign > 0])
        if offered and moves.done.count(offered[0]) > offered.count(offered[0]):
            moves.done.remove(offered[0])
        return moves

    patch(CountingPlace, "run", twice)


def not_consumed(patch):
    """That an update was consumed is not written down: it is there again when the node is opened."""
    flush = CountingNode._flush

    def deaf(self):
        site, mail = self._site, self._mail
        consumed = set()

        class Facade:
            def __getattr__(self, name):
                return getattr(site, name)

            def delete(self, relation, rows):
                if relation == mail:
                    consumed.update(rows)
                    return 0
                return site.delete(relation, rows)

            def rows(self, relation):
                gone = lost.get(id(site), set()) if relation == mail else ()
                return [row for row in site.rows(relation) if row not in gone]

        self._site = Facade()
        try:
            flush(self)
        finally:
            self._site = site
            lost.setdefault(id(site), set()).update(consumed)

    lost = {}
    patch(CountingNode, "_flush", deaf)


def numbers_not_kept(patch):
    """The numbers of what was sent begin anew with the process."""
    rebuild = CountingNode._rebuild

    def again(self):
        rebuild(self)
        self._numbers = dict.fromkeys(self._numbers, 0)

    patch(CountingNode, "_rebuild", again)


def no_report_when_opened(patch):
    """A round that began while the node was closed waits for it for ever."""
    rebuild = CountingNode._rebuild

    def quiet(self):
        report = CountingNode._report
        patch(CountingNode, "_report", lambda _: None)
        try:
            rebuild(self)
        finally:
            patch(CountingNode, "_report", report)

    patch(CountingNode, "_rebuild", quiet)


PROVENANCE = {
    no_revival: (0, ()),
    revival_shown_only: (0, ()),
    dead_not_kept: (10, ()),
    lengths_told_once: (1, ()),
    last_length_counts: (84, ()),
    own_lengths_taken: (1, ("restore", "rewind")),
    forgotten_for_good: (42, ("collect", "partition")),
    live_forgotten: (1, ("collect",)),
    mail_not_read: (1, ("crash",)),
}
COUNTING = {
    counted_twice: (11, ()),
    not_consumed: (2, ("crash",)),
    numbers_not_kept: (2, ("crash",)),
    no_report_when_opened: (5, ("deafen",)),
}
"""Mutant → the world with which the search begins, and the faults under which it is looked for."""
