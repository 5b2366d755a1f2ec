"""A random run: sites, writes, a network that loses, doubles, delays and reorders, faults; then healing.

After every step the site that acted is compared with the oracle over the writes it has seen: its state must
be a function of them, whatever came in which order, so nothing seen is lost and nothing deleted returns.
After healing every site must equal the oracle over all surviving writes, views too, and rest.
"""

from tests.model.meetings import FOLDER, FRESH, HALVES, KNOWN, Meetings
from tests.model.site import Site
from tests.model.sync import receive, request, serve
from tests.model.views import VIEWS

FAULTS = ("collect", "skew", "restore", "copy", "rewind", "expire", "newcomer", "host", "rights", "cut off")

STORM = 10_000
"""From this seed on: few rows, much collection, and many batches that arrive long after they were written."""


class World(Meetings):
    """Sites, messages and the time; everything random comes from one seed."""

    def __init__(self, seed, shortcuts=frozenset()):
        super().__init__(seed, shortcuts)
        self.network, self.backups, self.down = [], {}, set()
        self.theme = self.rng.choice(["broad", "garbage", "garbage", "views"])
        self.storm = seed >= STORM
        if self.storm:
            self.theme = "garbage"
        rate = 0.3 if self.theme == "broad" else 0.25
        self.faults = {f for f in FAULTS if self.rng.random() < (0.7 if f == "collect" else rate)}
        self.faults |= {"collect"} if self.theme == "garbage" else set()
        self.weight = 1 if self.theme == "broad" else self.rng.choice([1, 2, 4])
        self.transfers = 0
        # Whole: everyone hosts, and may send, everything.
        self.whole = self.theme != "views" and self.rng.random() < (0.3 if self.theme == "broad" else 0.6)
        self.faults -= {"rights", "host"} if self.whole else set()
        self.views = not self.whole and (self.theme == "views" or self.rng.random() < 0.8)
        # What is written: everything, or one or two relations of very few rows.
        focus = "RKBW" if self.theme == "broad" else self.rng.choice(["R", "R", "K", "K", "B", "W", "RK"])
        if self.theme == "views":
            focus = self.rng.choice(["R", "K", "RK", "RK", "RW", "W"])
        self.focus = set(focus)
        self.width = self.rng.choice([1, 2])
        self.depth = self.rng.choice([1, 2, 3]) if self.theme == "garbage" else 3
        if self.storm:
            self.width, self.depth = 1, 1
            self.focus = set(self.rng.choice(["R", "R", "K", "B", "W"]))
            self.faults |= set(self.rng.sample(["newcomer", "expire", "restore", "skew", "copy"], 2))
        self.limit = self.rng.choice([1, 2, 4, 1000])
        self._found()

    # Founding.

    def _found(self):
        number = self.rng.randint(3, 5) if self.theme == "broad" else self.rng.randint(2, 4)
        self.meeting = self.rng.choice([KNOWN, KNOWN, FRESH, FOLDER, HALVES])
        self.bridged = self.meeting != HALVES
        for i in range(number):
            side = int(self.meeting == HALVES and i >= number // 2)
            hosts = sorted(self.kinds)
            if side in self.sides and not self.whole:
                hosts = self._hosts(i)
            self.add(Site(self, f"s{i}", hosts, skew=self._skew()), side)
        self.introduce()
        if self.meeting == FOLDER:
            self.faults.discard("rewind")

    def _hosts(self, i):
        if self.views and (i == 1 or self.rng.random() < 0.4):
            if self.theme == "views" and self.focus <= {"R", "K"}:
                return ["j"]
            return self.rng.sample(sorted(VIEWS), self.rng.randint(1, 2))
        if self.views and self.rng.random() < 0.3:  # a view and one of its inputs
            view = self.rng.choice(sorted(VIEWS))
            return [view, self.rng.choice(VIEWS[view].inputs)]
        return sorted(self.focus | set(self.rng.sample(sorted(self.kinds), self.rng.randint(2, 4))))

    def _skew(self):
        return self.rng.choice([0, 0, -30, 30, 150, -150]) if "skew" in self.faults else 0

    # Steps.

    def run(self, steps):
        weights = (6, 5, 4, 10, 2) if self.theme == "broad" else (7, 10, 3, 5, 2)
        weights = (6, 14, 2, 4, 6) if self.storm else weights
        moves = list(
            zip((self.write, self.exchange, self.ask, self.deliver, self.publish), weights, strict=True)
        )
        moves += [(self.pass_time, 1), (self.crash, 1), (self.save, 1)]
        moves += [(self.collect, 4 if self.theme == "broad" else 6)] * ("collect" in self.faults)
        moves += [
            (getattr(self, f.replace(" ", "_")), self.weight)
            for f in sorted(self.faults)
            if f not in ("skew", "collect")
        ]
        choices, weights = zip(*moves, strict=True)
        bridge = self.rng.randrange(steps // 4, steps)
        for step in range(steps):
            if step == bridge:
                self.bridge()
            site = self.rng.choice(self.sites)
            self.rng.choices(choices, weights)[0](site)

    def neighbour(self, site):
        near = sorted(self.links[self.sites.index(site)])
        return self.sites[self.rng.choice(near)] if near else None

    def write(self, site):
        bases = [name for name in site.bases if name in self.focus]
        if not bases:
            return
        if self.whole and self.rng.random() < 0.3:
            self.transfers += 1
            row = ("t", self.transfers)
            site.write([("insert", "B", row), ("insert", "W", row)])
        else:
            site.write([self._operation(bases) for _ in range(self.rng.choice([1, 1, 2]))])
        self.check(site)

    def _operation(self, bases):
        relation = self.rng.choice(bases)
        row = (self.rng.randrange(self.width), self.rng.randrange(self.depth))
        return (
            self.rng.choice(["insert", "insert", "delete"] if relation in "RW" else ["insert", "delete"]),
            relation,
            row,
        )

    def exchange(self, site):
        peer = self.neighbour(site)
        if not peer or frozenset((site.name, peer.name)) in self.down:
            return
        self.pull(site, peer)
        if self.rng.random() < 0.6:
            self.pull(peer, site)

    def ask(self, site):
        peer = self.neighbour(site)
        if self.meeting == FOLDER:
            self.publish(site)
        elif peer and frozenset((site.name, peer.name)) not in self.down:
            self.network.append((peer, site, request(site, peer)))

    def publish(self, site):
        """A file in a folder: a batch that nobody asked for, which any neighbour may find, or not."""
        start = max(0, self.rng.choice([0, self.rng.randint(0, site.head), site.head - 1]))
        if getattr(site, "noticed", True) and self.neighbour(site):
            batch = self.file(site, start)
            self.network += [(self.neighbour(site), site, batch)] * self.rng.choice([1, 1, 2])

    def deliver(self, _):
        """Some message, not the oldest; it may stay and come again, or be lost."""
        if not self.network:
            return
        at = self.rng.randrange(len(self.network))
        to, sender, message = self.network[at]
        luck = self.rng.random()
        if luck < 0.8:
            self.network.pop(at)
        else:
            self.count("doubled")
        if luck < 0.1:
            self.count("lost")
        elif hasattr(message, "rows"):
            receive(to, message)
            self.check(to)
        elif (page := serve(to, message, self.limit)) is not None:
            self.network.append((sender, to, page))

    def collect(self, site):
        site.collect()
        self.check(site)

    def pass_time(self, _):
        self.now += self.rng.choice([5, 40, 120])
        for site in self.sites:
            site.tick()

    def crash(self, site):
        site.stages.clear()
        self.fuses.add(site)
        self.count("crashes")

    def save(self, site):
        self.backups[site] = site.backup()

    # Faults.

    def restore(self, site):
        if site not in self.anchors and site in self.backups:
            had = set(site.hosts)
            site.restore(self.backups[site])
            if not had <= site.hosts:
                self._reach_first(site)
            self.count("restores")
            self.check(site)

    def _reach_first(self, site):
        """Who reads from a site what that no longer hosts reaches the first of its side, as who hosts more:
        else nobody would be left to give it that.
        """
        for at in set(self.links[self.sites.index(site)]):
            self.link(at, {self.sides.index(self.sides[at])} - {at})

    def copy(self, site):
        if site in self.anchors or len(self.sites) > 5:
            return
        twin = Site(self, f"{site.name}c", site.hosts, skew=self._skew())
        twin.load(site.backup())
        twin.name = f"{site.name}c{len(self.sites)}"
        if "keep incarnation" not in self.shortcuts:
            twin.renew()
        self.add(twin)
        self.count("copies")

    def rewind(self, site):
        """The store goes back and nothing tells it so; every neighbour has a cursor from its future."""
        i = self.sites.index(site)
        backup = self.backups.get(site)
        if site in self.anchors or not backup or backup["inc"] != site.inc or backup["head"] == site.head:
            return
        near = [self.sites[n] for n in self.links[i]]
        others = [s for s in self.sites if s is not site and s not in near]
        if any(site.inc in {inc for inc, _ in s.cursors} for s in others) or not site.joined:
            return
        streams = [*site.bases, *site.received, *site.circuits]
        if all(
            s.cursors.get((site.inc, x), (0, 0))[0] > backup["head"]
            for s in near
            for x in streams
            if x in s.bases or x in s.received
        ) and all(any(x in [*s.bases, *s.received] for x in streams) for s in near):
            site.load(backup)
            site.noticed = "no tags" in self.shortcuts
            self.count("rewinds")
            self.check(site)

    def expire(self, site):
        """Who receives views only may give anyone up: it has nothing that the others could lose by it."""
        victim = self.rng.choice(self.sites)
        if victim not in ({site, *self.anchors} if site.bases else {site}):
            site.expire(victim.inc)
            self.count("expiries")

    def newcomer(self, _):
        if len(self.sites) < 6:
            hosts = sorted(self.kinds) if self.whole else self._hosts(2)
            site = Site(self, f"s{len(self.sites)}", hosts, skew=self._skew())
            self.add(site)
            self.count("newcomers")

    def host(self, site):
        """Host one more: a base relation where no view is received, else another view."""
        more = sorted(VIEWS if site.received else self.kinds)
        new = self.rng.choice(more)
        if new not in site.hosts:
            site.hosts.add(new)
            site.tables.setdefault(new, {})
            site.stages.clear()
            at = self.sites.index(site)
            self.link(at, {self.sides.index(self.sides[at])} - {at})
            site.begin()
            site.end()
            self.count("hosted later")

    def rights(self, site):
        if peer := self.neighbour(site):
            site.denied ^= {(peer.name, self.rng.choice([*site.bases, *site.received]))}
        self.count("rights")

    def cut_off(self, site):
        if peer := self.neighbour(site):
            self.down ^= {frozenset((site.name, peer.name))}
        self.count("partitions")

    # Healing.

    def heal(self):
        """What waits arrives, the time of every stamp comes, rights are given, neighbours sync till quiet."""
        self.bridge()
        self.rng.shuffle(self.network)
        for to, _, message in self.network:
            if hasattr(message, "rows"):
                receive(to, message)
                self.check(to)
        self.network, self.down = [], set()
        self.now += 10_000
        for site in self.sites:
            site.denied.clear()
            site.stages.clear()
            site.tick()
        self.settle()
        self.compare()
        if "collect" in self.faults:
            self.forget()


def run(seed, shortcuts=frozenset()):
    """One run; raises `WrongError` where the rules (or the shortcuts) fail. Returns what happened."""
    world = World(seed, shortcuts)
    world.run(world.rng.randint(20, 90) + (40 if world.storm else 0))
    world.heal()
    return world.counts
