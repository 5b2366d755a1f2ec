"""A site: tables, versions, local writes, incarnations, garbage. What it tells others is in `sync`.

Everything a site does is a commit: a write, an applied cut, a collection. A commit has the next number and
a random tag, stores all it changes at once, and advances the site's own entry in the vectors of all it holds.
"""

import copy
from dataclasses import replace

from tests.model.groups import Groups
from tests.model.membership import Membership
from tests.model.relations import KeyedKind, Pen, Row
from tests.model.views import (
    VIEWS,
    derivations,
    evaluate,
    identity,
    live_ids,
    live_tuples,
    liveness,
    valuation,
)

from everview.algebra.clock import HybridClock, Stamp
from everview.algebra.lattices import VersionVector

TOLERANCE = 60
EMPTY = (VersionVector(), Stamp(0, 0, "-"))


class Site(Groups, Membership):
    """One store. `world` gives the time, random tags, fresh incarnations and the record of writes."""

    def __init__(self, world, name, hosts, *, skew=0):
        self.world, self.name, self.skew = world, name, skew
        self.kinds, self.shortcuts = world.kinds, world.shortcuts
        self.hosts = set(hosts)
        self.inc = world.incarnation(name)
        self.head, self.opened_at = 0, 0
        self.tags = {0: 0}
        self.told_at = 0  # the last commit of which somebody may have heard
        self.tables = {stream: {} for stream in hosts}
        self.fed = {}  # view → (ids live when last fed, ids ever live)
        self.cursors = {}  # (peer incarnation, stream) → (head, tag)
        self.stages = {}  # peer incarnation → pages of a cut that has not ended
        self.floors = {name: kind.lowest for name, kind in self.kinds.items()}
        self.seen = {name: set() for name in self.kinds}  # which writes are in: for the oracle alone
        self.denied = set()  # (peer name, stream) that the peer may not write here
        self.shown = {}  # ✗ derivations as last valued
        self.past = 0
        self.start_groups()
        self.start_membership()
        self._start_clock()

    # Time.

    def physical(self):
        return max(self.world.now + self.skew, self.past)

    def _start_clock(self):
        self.clock = HybridClock(self.inc, self.physical, tolerance_us=TOLERANCE)
        self.observe()

    def valued(self, stamp):
        """A stamp counts once its time has come, give or take the tolerance."""
        return "future now" in self.shortcuts or self.has_come(stamp)

    def has_come(self, stamp):
        return stamp.time_us <= self.physical() + TOLERANCE

    def observe(self):
        """The clock passes every stamp held whose time has come, and the floor whatever it says.

        A collected stamp was in the past of every member, so it may be taken at its word.
        """
        floor = self.floors["K"]
        if isinstance(floor, Stamp) and "floor leaves clock" not in self.shortcuts:
            self.pass_by(floor)
        for key in self.tables.get("K", ()):
            if isinstance(key[1], Stamp):
                self.clock.observe(key[1])

    def pass_by(self, stamp):
        """The clock passes a stamp though its time may not have come by what this site takes for the time."""
        self.past = max(self.past, stamp.time_us)
        self.clock.observe(stamp)

    # Reading.

    @property
    def bases(self):
        return sorted(s for s in self.hosts if s in self.kinds)

    @property
    def circuits(self):
        """Views whose inputs are all here: computed, and fed to others."""
        return sorted(
            v for v, view in VIEWS.items() if self.world.views and self.hosts.issuperset(view.inputs)
        )

    @property
    def received(self):
        """Views hosted without all their inputs: kept as derivations."""
        return sorted(s for s in self.hosts if s in VIEWS and not self.hosts.issuperset(VIEWS[s].inputs))

    def rows(self, stream):
        if stream in self.kinds:
            return self.kinds[stream].valuation(self.tables[stream], self.valued)
        if stream in self.received:
            table = self.tables[stream]
            if "delta only" in self.shortcuts:
                return valuation({k for k, on in self.shown.items() if on and k in table}, _Any())
            return valuation(table, live_ids(self.kinds, table, self.valued))
        return evaluate(VIEWS[stream], {name: self.rows(name) for name in VIEWS[stream].inputs})

    # Commits.

    def begin(self):
        self.head += 1
        self.tags[self.head] = self.world.rng.getrandbits(60)

    def end(self):
        """Drop what is superseded, feed the views, advance the own entries: the last part of every commit.

        What grew no row uses up no number, or two sites that sync would never come to rest. Only a relation
        held whole has all that is written here; the liveness that a view receives comes back by its cuts.
        """
        self.observe()
        self._drop_superseded()
        for view in self.circuits:
            self._feed(VIEWS[view])
        if not any(row.version == self.head for table in self.tables.values() for row in table.values()):
            del self.tags[self.head]
            self.head -= 1
        reading = self.clock.stamp()
        for what in self.wholes():
            vector, _ = self.own(what)
            if isinstance(what, str) or "claim for views" in self.shortcuts:
                vector = VersionVector({**dict(vector.items()), self.inc: self.head})
            self.known[self.inc, what] = (vector, reading)

    def _drop_superseded(self):
        kind = self.kinds["K"]
        if not isinstance(kind, KeyedKind):
            return
        valued = (lambda _: True) if "future supersedes" in self.shortcuts else self.valued
        if "K" in self.hosts:
            for key in kind.superseded(self.tables["K"], valued):
                del self.tables["K"][key]
        for view in self.received:
            part = [key[2] for key in self.tables[view] if key[:2] == ("l", "K")]
            for key in kind.superseded(part, valued):
                del self.tables[view]["l", "K", key]

    def write(self, operations):
        """One transaction: every operation under one dot and one stamp; returns whether anything grew."""
        self.observe()
        stamps, pens = [], {}

        def stamp():
            if not stamps:
                stamps.append(self.clock.stamp())
            return stamps[0]

        self.begin()
        grown = False
        for operation, relation, row in operations:
            pen = pens.setdefault(
                relation,
                self._pen(relation, stamp),
            )
            grown |= self._operate(operation, relation, row, pen)
        self.end()
        return grown

    def _pen(self, relation, stamp):
        floor, apart = self.floors[relation], self.apart.get(relation, 0)
        if "heard is seen" not in self.shortcuts:
            apart = self._seen_apart(relation)
        return Pen((self.inc, self.head), stamp, floor, self.valued, self.shortcuts, apart)

    def _seen_apart(self, relation):
        """What another group has forgotten of what was seen here: a cut from there brought its floor, too."""
        return min(self.apart[relation], self.floors[relation]) if relation in self.apart else 0

    def _operate(self, operation, relation, row, pen):
        table, kind = self.tables[relation], self.kinds[relation]
        held = table.get(row)
        growth = getattr(kind, operation)(table, row, pen)
        if growth:
            stamp = pen.stamp() if relation == "K" else None
            floor = 0
            if relation == "R":
                apart = replace(pen, apart=self._seen_apart(relation))
                floor = pen.floor if held is None else kind.known(held.value, apart)
            self.world.history.record(self, relation, operation, row, stamp, floor)
        self._store(relation, growth)
        return bool(growth)

    def _store(self, stream, growth):
        for key, value in growth.items():
            self.tables[stream][key] = Row(value, self.head, (self.inc, self.head))

    def tick(self):
        """Time has passed: what a stamp's coming changes is a commit of its own, if someone is fed."""
        self.begin()
        self.end()

    # Views.

    def _feed(self, view):
        """Bring a view's derivations and liveness up to the base: only what grew gets the new version.

        Derivations are made while their tuples live. When an id revives, everything over it is derived
        again, under a new version: a reader may have collected what it was sent before.
        """
        table = self.tables.setdefault(view.name, {})
        named = {i for key in table if key[0] == "d" for i in key[3]}
        wanted = liveness(self.kinds, view, self.tables, self.valued, self.shortcuts, named)
        for key in [key for key in table if key[0] == "l" and key not in wanted]:
            del table[key]
        live = {
            i
            for name in view.inputs
            for i, _ in live_tuples(self.kinds, name, self.tables[name], self.valued)
        }
        before, ever = self.fed.get(view.name, (set(), set()))
        appeared = live - before
        if "no revival" in self.shortcuts:
            appeared -= ever
        for key in derivations(self.kinds, view, self.tables, self.valued):
            due = key[3][:1] if "one-sided join" in self.shortcuts else key[3]
            if not appeared.isdisjoint(due):
                table[identity(key, self.shortcuts)] = Row(True, self.head, None)
        self.fed[view.name] = (live, ever | live)
        for key, (value, origin) in wanted.items():
            if key not in table or table[key].value != value:
                table[key] = Row(value, self.head, origin)

    # Garbage.

    def collect(self):
        """Forget what is dead and stable, in the relations held whole and in the liveness of views."""
        self.begin()
        for relation in self.bases:
            if relation in self.joined:
                self._collect(relation, self.tables[relation], relation)
        for view in self.received:
            if view in self.joined:
                table = self.tables[view]
                for relation in VIEWS[view].inputs:
                    part = {k[2]: row for k, row in table.items() if k[0] == "l" and k[1] == relation}
                    for key in self._collect(relation, part, (view, relation)):
                        del table["l", relation, key]
        self.end()
        for view in {*self.circuits, *self.received}:
            self._forget_derivations(view)

    def _collect(self, relation, table, what):
        kind, group = self.kinds[relation], self.component(what)
        if relation == "K":
            self.agree(relation, what, group)
        stable = lambda dot: (
            self.stable(relation, group, dot)
            and (relation != "B" or (self.is_settled(dot[0]) and self.is_told(dot)))
        )
        passed = lambda stamp: self.passed(relation, group, stamp)
        keys, floor = kind.garbage(table, stable, passed, self.valued)
        if what == "B":
            self._cancel(group, keys)
        for key in keys:
            del table[key]
        if keys and what == relation and floor is not None:
            self.raise_floor(relation, floor)
        if keys:
            self.collected_at[what if isinstance(what, str) else what[0]] = self.head
        self.world.count("collected", len(keys))
        return keys

    def _cancel(self, group, pairs):
        """Note what is forgotten of the bag: whoever has not seen all of it would bring its rows back."""
        for inc, commit, _ in pairs:
            self.cancel({group: VersionVector({inc: commit})})

    def is_told(self, dot):
        """Whether somebody may have heard of a write of the bag; of another's, this site has.

        Should the store have gone back in time, then others may have the one half of a pair from its first
        life: its other half, of the second, has to be told, for it counts there.
        """
        return "forget unheard" in self.shortcuts or dot[0] != self.inc or dot[1] <= self.told_at

    def is_settled(self, writer):
        """Whether a writer has ever been in our group, or in one that came to it.

        Else another group, with the writer's original, may drop other pairs with the same rows.
        """
        ours = {self.groups["B"], *self.absorbed.get("B", ())}
        return "strangers" in self.shortcuts or not ours.isdisjoint(self.groups_of(writer, "B"))

    def raise_floor(self, relation, floor):
        held = self.floors[relation]
        self.floors[relation] = floor if held is None else max(held, floor)

    def _forget_derivations(self, view):
        """A derivation over an id that is no longer known; should the id revive, it is derived again."""
        table = self.tables[view]
        known = set()
        for key in table:
            if key[0] == "l":
                _, name, base = key
                known.add(
                    (name, *base)
                    if name == "K" and isinstance(base[1], Stamp)
                    else (name, base[0] if isinstance(base[0], tuple) else base)
                )
        for key in [k for k in table if k[0] == "d" and not known.issuperset(k[3])]:
            del table[key]

    # Incarnations.

    def backup(self):
        """A copy of the store's file, as it is now."""
        kept = (
            "head",
            "tags",
            "inc",
            "hosts",
            "tables",
            "fed",
            "cursors",
            "floors",
            "seen",
            "joined",
            "groups",
            "former",
            "founded",
            "bound",
            "absorbed",
            "apart",
            "lifted",
            "provisional",
            "collected_at",
            "cancelled",
            "told_at",
            "past",
            "known",
            "agreed",
            "members",
            "sponsors",
            "heard",
            "expired_at",
            "retired",
            "settled",
            "gone_over",
            "stays",
            "steps",
            "shown",
        )
        return copy.deepcopy({name: getattr(self, name) for name in kept})

    def load(self, backup):
        self.__dict__.update(copy.deepcopy(backup))
        self.stages = {}
        self.opened_at = self.head
        self._start_clock()

    def restore(self, backup):
        """Opening sees that the file went back in time: a new incarnation, and the old one is retired."""
        self.load(backup)
        if "keep incarnation" not in self.shortcuts:
            old = self.inc
            self.renew()
            self.retire(old)

    def begin_anew(self):
        """A view has more than there is: with a new incarnation nobody takes it for one that still has it."""
        old = self.inc
        self.renew()
        self.retire(old)
        self.world.count("voided")

    def renew(self):
        """A new incarnation: it holds what it held and is a member of nothing yet, so it must join again."""
        old, self.inc = self.inc, self.world.incarnation(self.name)
        for what in self.wholes():
            self.known[self.inc, what] = self.known.get((old, what), EMPTY)
        if "strangers" not in self.shortcuts:  # it cannot speak for others: they are told of where it joins
            self.known = {k: told for k, told in self.known.items() if k[0] == self.inc}
            self.agreed = {}
        self.lose_groups()
        self.cursors, self.stages = {}, {}
        self.opened_at = self.head
        self._start_clock()

    def set_clock(self, skew):
        """Set the clock. It may have told that it will write nothing below a reading that now lies ahead, and
        that cannot be taken back: so it goes on as a new incarnation, and tells again, as of now, what it
        wrote under the old time. Else nobody would see what it writes before that time has come.

        What it wrote under that time waits for it, told or not: it may have replaced what others have.
        """
        last = self.clock.stamp()
        mine = {self.inc, *self.retired}
        shown = self.kinds["K"].greatest(self.tables["K"], self.valued) if "K" in self.hosts else {}
        readings = list(self.known.values())
        self.skew = skew
        if self.has_come(last):
            return
        if "clock goes back" in self.shortcuts:
            self._start_clock()
        else:
            old = self.inc
            self.renew()
            self.retire(old)
        for _, reading in readings:  # of what it has replaced since nothing is left here
            self.clock.observe(reading)
        self.begin()
        stamp = self.clock.stamp()
        for name, at in shown.items():
            row = self.tables["K"][name, at]
            if not self.has_come(at) and row.origin[0] in mine:
                self.tables["K"][name, stamp] = Row(row.value, self.head, (self.inc, self.head))
                operation = "delete" if row.value is None else "insert"
                self.world.history.record(self, "K", operation, row.value or (name, 0), stamp, 0)
                if "untold waits not" in self.shortcuts and row.origin[1] > self.told_at:
                    del self.tables["K"][name, at]
                    self.seen["K"] -= {n for n in self.seen["K"] if self.world.history.events[n].stamp == at}
        self.end()

    def rewound(self):
        """A reader shows a tag that is not ours: the file went back unnoticed. What was written since it
        was opened is told again under the new incarnation; what came before, others may have deleted.
        """
        old, opened_at = self.inc, self.opened_at
        self.renew()
        self.retire(old)
        self.begin()
        for relation in self.bases:
            table = self.tables[relation]
            for key, row in list(table.items()):
                origin, commit = row.origin
                if origin != old or commit <= opened_at:
                    continue
                del table[key]
                again = key
                if relation == "B":
                    again = (self.inc, self.head, *key[1:])
                elif relation == "W" and key[1][:2] == row.origin:
                    again = (key[0], (self.inc, self.head, *key[1][1:]))
                table[again] = Row(row.value, self.head, (self.inc, self.head))
        for what in self.wholes():
            vector, reading = self.own(what)
            entries = {**dict(vector.items()), old: min(opened_at, vector[old])}
            self.known[self.inc, what] = (VersionVector(entries), reading)
        self.end()
        for group, gone in self.cancelled.items():  # with what nobody will ever have
            if gone[old] > opened_at:
                anew = {old: opened_at, self.inc: self.head}
                self.cancelled[group] = VersionVector({**dict(gone.items()), **anew})


class _Any:
    def __contains__(self, _):
        return True
