"""Windows that close for certain, as a program: sources, readers, markers, and who is in charge of a source.

A source writes events of a relation R that it owns, and closing markers into M: (until, its vector of R). A
reader certifies a marker when its own vector of R covers the marker's; a window is final where every source
is certified beyond its end. Site h hosts M only, so markers may arrive by it long before the events do. What
a source writes or deletes before `until` after closing goes aside at its own door.

A store that was restored or copied has a new incarnation, and may have forgotten what it closed. It writes
nothing until it is *in charge*: it has opened under its new incarnation (the last to open counts), and every
member that holds R or M is known to have heard of that. Such a member's vector is believed only where one's
own covers it, so whoever is in charge has all that anybody had of the source, and who was in charge before
and hears of the opening steps down.

The promise: what a final window holds is the same wherever and whenever somebody sees it as final. Of what
only a store had seen that was put back to before that, nobody knows.
"""

import random
from dataclasses import dataclass, field, replace

SHORTCUTS = {
    "marker alone": "a window is final as soon as the markers of all sources are there",
    "one vector": "a marker is held against the vector of the markers, and not of the events",
    "late events": "an event goes in though its source has closed its window",
    "late deletes": "a delete goes through though its source has closed the window",
    "close again": "a restored or copied source writes and closes at once",
    "opening alone": "a source is in charge as soon as it has opened",
    "markers only": "a source is in charge when the members have heard of it by M, whatever they have of R",
    "believe all": "what a member has is believed though one has not got it oneself",
    "no restating": "a marker whose events were lost with their store is not made anew",
    "no stepping down": "a source that hears of another that has opened goes on",
}

SOURCES = ("s0", "s1")
TIMES = 3


class WrongError(AssertionError):
    """Two final values of one window, or one that is not final in the end."""


@dataclass(frozen=True)
class Marker:
    """All events of a source before `until` are within `vector`."""

    stamp: tuple
    until: int
    vector: dict


@dataclass
class Site:
    slot: str
    name: str
    inc: str
    hosts: tuple = ("R", "M")
    commits: int = 0
    clock: int = 0
    first: bool = True
    charge: str = ""
    rows: dict = field(default_factory=dict)  # id → (source, time)
    dead: set = field(default_factory=set)
    markers: dict = field(default_factory=dict)  # source → Marker
    openings: dict = field(default_factory=dict)  # source → (stamp, incarnation, commit)
    vectors: dict = field(default_factory=lambda: {"R": {}, "M": {}})
    known: dict = field(default_factory=dict)  # slot → relation → vector
    certified: dict = field(default_factory=dict)
    late: int = 0

    def copied(self):
        """The same state, to be sent or kept; markers and believed vectors are never changed in place."""
        return replace(
            self,
            rows=dict(self.rows),
            dead=set(self.dead),
            markers=dict(self.markers),
            openings=dict(self.openings),
            vectors={relation: dict(vector) for relation, vector in self.vectors.items()},
            known=dict(self.known),
            certified=dict(self.certified),
        )

    def commit(self):
        self.commits += 1
        self.clock += 1
        for relation in self.hosts:
            self.vectors[relation][self.inc] = self.commits
        return self.clock, self.inc


def covers(mine, theirs):
    return all(mine.get(inc, 0) >= commit for inc, commit in theirs.items())


def joined(mine, theirs):
    return {inc: max(mine.get(inc, 0), theirs.get(inc, 0)) for inc in {**mine, **theirs}}


class World:
    def __init__(self, seed, shortcuts=()):
        self.random = random.Random(seed)
        self.shortcuts = set(shortcuts)
        self.sites = {slot: Site(slot, slot, f"{slot}/0") for slot in (*SOURCES, "r0", "r1")}
        self.sites["h"] = Site("h", "h", "h/0", hosts=("M",))
        self.names = {site.inc: site.name for site in self.sites.values()}
        self.ids = 0
        self.pool = []
        self.backups = {}
        self.final = {}  # window → what it held when it was first seen to be final
        self.witnesses = {}  # window → the slots that have seen it so
        self.troubled = self.random.choice((*SOURCES, "r0", None))  # who is put back, now and then
        self.copies = self.random.random() < 0.3

    # The source's door.

    def in_charge(self, site):
        if "close again" in self.shortcuts:
            return True
        opening = site.openings.get(site.name)
        if opening is None:
            return site.first
        _, inc, commit = opening
        if inc != site.inc:
            return site.first and "no stepping down" in self.shortcuts
        if site.charge == inc or "opening alone" in self.shortcuts:
            return True
        needed = ("M",) if "markers only" in self.shortcuts else ("R", "M")
        for other in self.sites.values():
            for relation in needed:
                told = site.known.get(other.slot, {}).get(relation, {})
                if other is not site and relation in other.hosts and told.get(inc, 0) < commit:
                    return False
        site.charge = inc
        return True

    def closed(self, site):
        marker = site.markers.get(site.name)
        return 0 if marker is None else marker.until

    def write(self, site):
        time = self.random.randrange(TIMES)
        if not self.in_charge(site):
            return
        if time < self.closed(site) and "late events" not in self.shortcuts:
            site.late += 1
            return
        self.ids += 1
        site.rows[self.ids] = (site.name, time)
        site.commit()

    def delete(self, site):
        mine = [i for i, (name, _) in site.rows.items() if name == site.name and i not in site.dead]
        if not mine or not self.in_charge(site):
            return
        chosen = self.random.choice(mine)
        if site.rows[chosen][1] < self.closed(site) and "late deletes" not in self.shortcuts:
            site.late += 1
            return
        site.dead.add(chosen)
        site.commit()

    def close(self, site):
        if not self.in_charge(site):
            return
        until, before = self.closed(site) + 1, site.markers.get(site.name)
        if before is not None and not covers(site.vectors["R"], before.vector):
            # Its events were lost with the store that wrote them. Nobody has them, so nobody went by it.
            until = before.until if "no restating" not in self.shortcuts else until
        if until > TIMES:
            return
        stamp = site.commit()
        vector = {inc: n for inc, n in site.vectors["R"].items() if self.names[inc] == site.name}
        site.markers[site.name] = Marker(stamp, until, vector)
        self.certify(site)

    def open(self, site):
        """A store with a new incarnation says that it is the source from now on."""
        opening = site.openings.get(site.name)
        if site.first or (opening is not None and opening[1] == site.inc) or site.charge == site.inc:
            return
        stamp = site.commit()
        site.openings[site.name] = (stamp, site.inc, site.commits)

    # Readers.

    def certify(self, site):
        if "R" not in site.hosts:
            return
        relation = "M" if "one vector" in self.shortcuts else "R"
        for source, marker in site.markers.items():
            if "marker alone" in self.shortcuts or covers(site.vectors[relation], marker.vector):
                site.certified[source] = max(site.certified.get(source, 0), marker.until)

    def send(self, site):
        self.pool.append(site.copied())

    def receive(self, site, cut):
        common = [relation for relation in site.hosts if relation in cut.hosts]
        if cut.slot == site.slot or cut.vectors["M"].get(site.inc, 0) > site.commits:
            return
        if "R" in common:
            site.rows |= cut.rows
            site.dead |= cut.dead
        for source, marker in cut.markers.items():
            if source not in site.markers or marker.stamp > site.markers[source].stamp:
                site.markers[source] = marker
        for source, opening in cut.openings.items():
            site.openings[source] = max(site.openings.get(source, opening), opening)
        for relation in common:
            site.vectors[relation] = joined(site.vectors[relation], cut.vectors[relation])
        site.clock = max(site.clock, cut.clock)
        told = {cut.slot: {r: cut.vectors[r] for r in cut.hosts}, **cut.known}
        for slot, vectors in told.items():
            for relation, vector in vectors.items():
                mine = site.vectors.get(relation, {})
                if slot != site.slot and ("believe all" in self.shortcuts or covers(mine, vector)):
                    before = site.known.get(slot, {})
                    site.known[slot] = {**before, relation: joined(before.get(relation, {}), vector)}
        self.certify(site)

    # Trouble.

    def renewed(self, state, slot):
        inc = f"{slot}/{self.random.random()}"
        self.names[inc] = state.name
        state.slot, state.inc, state.first, state.charge, state.known = slot, inc, False, "", {}
        return state

    def restore(self, slot):
        if slot in self.backups:
            for window in [w for w, slots in self.witnesses.items() if slots == {slot}]:
                del self.final[window], self.witnesses[window]
            self.sites[slot] = self.renewed(self.backups[slot].copied(), slot)

    def copy(self):
        self.sites["copy"] = self.renewed(self.sites["s0"].copied(), "copy")
        self.copies = False

    # The promise.

    def check(self):
        for site in self.sites.values():
            if "R" not in site.hosts:
                continue
            for window in range(TIMES):
                if any(site.certified.get(source, 0) <= window for source in SOURCES):
                    continue
                self.witnesses.setdefault(window, set()).add(site.slot)
                held = {i for i, (_, time) in site.rows.items() if time == window and i not in site.dead}
                if self.final.setdefault(window, held) != held:
                    raise WrongError(f"window {window}: {self.final[window]}, at {site.slot} {held}")

    def step(self):
        site = self.sites[self.random.choice(list(self.sites))]
        what = self.random.random()
        if what < 0.25 and site.name in SOURCES:
            self.random.choice((self.write, self.write, self.delete, self.close))(site)
        elif what < 0.35:
            self.open(site)
        elif what < 0.6:
            self.send(site)
        elif what < 0.92 and self.pool:
            self.receive(site, self.random.choice(self.pool[-12:]))
        elif what < 0.95:
            self.backups[site.slot] = site.copied()
        elif what < 0.98 and site.slot == self.troubled:
            self.restore(site.slot)
        elif self.copies:
            self.copy()
        self.check()

    def heal(self):
        """Everybody hears of everything; then whoever is in charge of a source closes all of it."""
        for _ in range(4):
            self.meet()
        for site in list(self.sites.values()):
            self.open(site)
        for _ in range(4):
            self.meet()
        for source in SOURCES:
            charged = [site for site in self.sites.values() if site.name == source and self.in_charge(site)]
            if len(charged) != 1:
                raise WrongError(f"{len(charged)} are in charge of {source}")
            for _ in range(TIMES + 1):
                self.close(charged[0])
        for _ in range(3):
            self.meet()
        for site in self.sites.values():
            missing = [s for s in SOURCES if site.certified.get(s, 0) < TIMES and "R" in site.hosts]
            if missing:
                raise WrongError(f"{site.slot} waits for {missing}")

    def meet(self):
        for one in self.sites.values():
            for other in self.sites.values():
                self.receive(other, one.copied())
        self.check()


def run_windows(seed, shortcuts=(), steps=160):
    """One random run; WrongError when a promise is broken."""
    world = World(seed, shortcuts)
    for _ in range(steps):
        world.step()
    world.heal()
    return world


def heard_by_markers_only(shortcuts=()):
    """A restored source hears of what it closed by h, which has none of the events."""
    world = World(0, shortcuts)
    s0, s1, r0, r1, h = (world.sites[slot] for slot in ("s0", "s1", "r0", "r1", "h"))
    world.backups["s0"] = s0.copied()
    world.ids, s0.rows[1] = 1, ("s0", 0)
    s0.commit()
    world.close(s0)
    world.close(s1)
    for one in (s0, s1):
        world.receive(r0, one.copied())
    world.check()
    world.restore("s0")
    s0 = world.sites["s0"]
    world.open(s0)
    for one in (s1, r0, r1, h):
        world.receive(one, s0.copied())
    world.receive(h, r0.copied())
    for one in (s1, r1, h):
        world.receive(s0, one.copied())
    world.close(s0)
    for one in (s0, s1):
        world.receive(r1, one.copied())
    world.check()
    world.heal()
