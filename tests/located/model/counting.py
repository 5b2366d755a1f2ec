"""Counting mode as a program: PSN's pick, fire and commit, with derivation sets and infinite-count sets.

An update inserts or deletes one derivation of a fact: (fact, S, H), where S are all facts it was made from,
and H those of them that go round in a circle. A place picks an update, fires the delta rules over what it
held before and after, and commits. A deletion waits until what it deletes is there. Counts say how often a
fact was derived, and of what goes round in a circle they mean nothing: what is shown is a set.

`World` is the paper's: updates are picked in any order, none is lost. `Network` has channels that lose and
repeat, updates that are numbered, and a detector that tells when all is quiet.
"""

from collections import Counter
from dataclasses import dataclass

from tests.located.model.rules import instance, match

SHORTCUTS = {
    "no guard": "a base fact that is not there can be deleted, one that is there inserted again",
    "discard deletes": "a deletion is dropped if what it deletes is not there yet (PSN, Appendix B)",
    "no circles": "updates of facts that go round in a circle are sent on",
    "only new": "delta rules read what is there after the update at every position",
    "only old": "delta rules read what was there before the update at every position",
    "no dots": "an update that arrives twice counts twice",
    "send once": "an update that was lost is not sent again",
    "one wave": "one round of reports says that all is quiet",
    "ignore waiting": "updates that wait to be picked are left out of reports",
    "silent cut": "derivation sets longer than the limit are dropped",
}

INSERT, DELETE = 1, -1
NONE = frozenset()
LIMIT = 5


class StuckError(AssertionError):
    """Something waits for ever, or goes on for ever."""


def picked(update):
    """The update with its infinite-count set as the picking place sees it."""
    sign, fact, support, circles = update
    return (sign, fact, support, circles | {fact}) if fact in support else update


class Place:
    """The derivations at one place: (fact, S, H) → how many."""

    def __init__(self, rules, shortcuts, held=None):
        self.rules, self.shortcuts = rules, shortcuts
        self.held = Counter(held or {})

    def may_pick(self, update):
        sign, *derivation = picked(update)
        return sign == INSERT or self.held[tuple(derivation)] > 0 or "discard deletes" in self.shortcuts

    def take(self, update):
        """Pick, fire, commit: a new place, and the updates that follow."""
        sign, *derivation = picked(update)
        derivation = tuple(derivation)
        after = Place(self.rules, self.shortcuts, self.held)
        if sign == DELETE and not self.held[derivation]:
            return after, []
        after.held[derivation] += sign
        after.held = +after.held
        return after, list(self._fire(sign, derivation, after.held))

    def _fire(self, sign, derivation, new):
        for rule in self.rules:
            for driver, atom in enumerate(rule.body):
                if (bound := match(atom, derivation[0], {})) is None:
                    continue
                found = [(bound, 1, {derivation[0]} | derivation[1], derivation[2])]
                for other, at in enumerate(rule.body):
                    if other == driver:
                        continue
                    source = new if other < driver else self.held
                    if "only new" in self.shortcuts:
                        source = new
                    if "only old" in self.shortcuts:
                        source = self.held
                    found = [
                        (b, n * count, support | {fact} | more, circles | round_)
                        for bound, n, support, circles in found
                        for (fact, more, round_), count in source.items()
                        if (b := match(at, fact, bound)) is not None
                    ]
                for bound, n, support, circles in found:
                    head = instance(rule.head, bound)
                    if head in circles and "no circles" not in self.shortcuts:
                        continue
                    if "silent cut" in self.shortcuts and len(support) > LIMIT:
                        continue
                    yield from [(sign, head, frozenset(support), frozenset(circles))] * n

    def rows(self):
        return {fact for fact, _, _ in self.held}


class World:
    """All places, and one multiset of updates; a step picks any of them that may be picked."""

    def __init__(self, rules, places, shortcuts=frozenset()):
        self.shortcuts = shortcuts
        self.places = {place: Place(rules, shortcuts) for place in places}
        self.base = NONE
        self.waiting = Counter()

    def copy(self):
        made = object.__new__(World)
        made.shortcuts, made.places = self.shortcuts, dict(self.places)
        made.base, made.waiting = self.base, self.waiting
        return made

    def key(self):
        return (
            tuple(frozenset(place.held.items()) for place in self.places.values()),
            frozenset(self.waiting.items()),
        )

    def write(self, what, fact):
        """Guarded at the base: what is there is not inserted again, what is not there not deleted."""
        if (what == "insert") == (fact in self.base) and "no guard" not in self.shortcuts:
            return
        self.base = self.base | {fact} if what == "insert" else self.base - {fact}
        sign = INSERT if what == "insert" else DELETE
        self.waiting = self.waiting + Counter([(sign, fact, NONE, NONE)])

    def steps(self):
        found = [update for update in self.waiting if self.places[update[1][1]].may_pick(update)]
        if not found and self.waiting:
            raise StuckError(f"{sum(self.waiting.values())} deletions wait for what never comes")
        return found

    def after(self, update):
        made = self.copy()
        place = update[1][1]
        made.places[place], follow = self.places[place].take(update)
        made.waiting = self.waiting - Counter([update]) + Counter(follow)
        return made

    def rows(self):
        return set().union(*(place.rows() for place in self.places.values()))


@dataclass
class Node:
    """A place with channels: what it sends is numbered, and what it has consumed is remembered."""

    place: Place
    waiting: list
    sent: dict
    """Place → its updates, in order: the number is the dot's."""
    consumed: set

    def report(self, shortcuts):
        waiting = 0 if "ignore waiting" in shortcuts else len(self.waiting)
        return sum(map(len, self.sent.values())), len(self.consumed), waiting


class Network:
    """Places over channels that lose, repeat and reorder; the detector asks them in turn, between steps."""

    def __init__(self, rules, places, rng, shortcuts=frozenset()):
        self.rng, self.shortcuts = rng, shortcuts
        self.nodes = {place: Node(Place(rules, shortcuts), [], {}, set()) for place in places}
        self.base, self.lost = NONE, set()
        self.waves = [{}, {}]
        self.picks = 0

    def write(self, what, fact):
        if (what == "insert") == (fact in self.base) and "no guard" not in self.shortcuts:
            return
        self.base = self.base | {fact} if what == "insert" else self.base - {fact}
        self.nodes[fact[1]].waiting.append((INSERT if what == "insert" else DELETE, fact, NONE, NONE))

    def under_way(self):
        """Updates that were sent and not consumed, as (sender, receiver, number)."""
        return [
            (sender, to, number)
            for sender, node in self.nodes.items()
            for to, updates in node.sent.items()
            for number in range(len(updates))
            if (sender, number) not in self.nodes[to].consumed and (sender, to, number) not in self.lost
        ]

    def step(self):
        """Deliver something, perhaps again, or lose it; pick something; or ask a place for a report."""
        rng, under_way = self.rng, self.under_way()
        able = [
            (name, update)
            for name, node in self.nodes.items()
            for update in node.waiting
            if node.place.may_pick(update)
        ]
        what = rng.choices(["arrive", "again", "lose", "pick", "ask"], [8, 2, 1, 8, 8])[0]
        if what == "arrive" and under_way:
            self.arrive(*rng.choice(under_way))
        elif what == "again":
            every = [
                (sender, to, number)
                for sender, node in self.nodes.items()
                for to, updates in node.sent.items()
                for number in range(len(updates))
            ]
            if every:
                self.arrive(*rng.choice(every))
        elif what == "lose" and under_way and "send once" in self.shortcuts:
            self.lost.add(rng.choice(under_way))
        elif what == "pick" and able:
            self.pick(*rng.choice(able))
        elif what == "ask":
            return self.ask()
        return False

    def begin_asking(self):
        """Forget all reports: what was written since may be in none of them."""
        self.waves = [{}, {}]

    def is_done(self):
        """What is so, and no place can know by itself: nothing is under way, and nothing can be picked."""
        return not self.under_way() and not any(node.waiting for node in self.nodes.values())

    def is_stuck(self):
        waiting = [(node, update) for node in self.nodes.values() for update in node.waiting]
        return (
            bool(waiting)
            and not self.under_way()
            and not any(node.place.may_pick(update) for node, update in waiting)
        )

    def arrive(self, sender, to, number):
        node = self.nodes[to]
        if (sender, number) in node.consumed and "no dots" not in self.shortcuts:
            return
        node.consumed.add((sender, number))
        node.waiting.append(self.nodes[sender].sent[to][number])

    def pick(self, name, update):
        node = self.nodes[name]
        self.picks += 1
        node.waiting.remove(update)
        node.place, follow = node.place.take(update)
        for made in follow:
            to = made[1][1]
            if to == name:
                node.waiting.append(made)
            else:
                node.sent.setdefault(to, []).append(made)

    def ask(self, name=None):
        """Ask a place that was not asked in this round; return whether the detector says all is quiet."""
        before, now = self.waves
        left = [name for name in self.nodes if name not in now]
        name = name or self.rng.choice(left)
        now[name] = self.nodes[name].report(self.shortcuts)
        if len(left) > 1:
            return False
        self.waves = [now, {}]
        sent, consumed, waiting = (sum(column) for column in zip(*now.values(), strict=True))
        same = now == before or "one wave" in self.shortcuts
        return same and sent == consumed and not waiting

    def rows(self):
        return set().union(*(node.place.rows() for node in self.nodes.values()))
