"""Random runs of stores that are copied, mostly before they have met anybody, and found groups apart.

The driver's runs seldom copy a store that has rows and is in no group yet, let it and the copy go to
different groups, and have one of these forget something before they meet. Here many do.
"""

from tests.model.ground import Ground
from tests.model.site import Site

KINDS = "RKBW"


class Copies(Ground):
    """A few sites with one relation in two camps, which meet in the end; everything random from one seed."""

    views = False

    def __init__(self, seed, shortcuts=frozenset()):
        super().__init__(seed, shortcuts)
        self.relation = self.rng.choice(KINDS)
        self.width = self.rng.choice([1, 1, 1, 2])
        self.limit = self.rng.choice([1, 1000])
        self.camps = []
        for i in range(self.rng.randint(1, 3)):
            self.add(Site(self, f"s{i}", [self.relation]), i % 2)

    def add(self, site, camp):
        site.begin()
        site.end()
        self.links[len(self.sites)] = set()
        self.sites.append(site)
        self.camps.append(camp)

    def run(self, steps):
        """Write and copy first; then each camp for itself; then some meet across; then all."""
        early, late = self.rng.randint(1, 6), self.rng.randint(steps // 3, steps)
        for step in range(steps):
            site = self.rng.choice(self.sites)
            if step < early:
                self.rng.choice([self.write, self.write, self.copy])(site)
            else:
                moves = (self.write, self.exchange, self.collect, self.copy, self.wait)
                self.rng.choices(moves, (6, 10, 6, 1, 1))[0](site, across=step >= late)

    def write(self, site, *, across=False):
        row = (self.rng.randrange(self.width), self.rng.randrange(2) if self.relation == "K" else 0)
        site.write([(self.rng.choice(["insert", "insert", "delete"]), self.relation, row)])
        self.check(site)

    def copy(self, site, *, across=False):
        if len(self.sites) < 5:
            twin = Site(self, site.name, site.hosts)
            twin.load(site.backup())
            twin.name = f"{site.name}c{len(self.sites)}"
            twin.renew()
            self.add(twin, 1 - self.camps[self.sites.index(site)])
            self.count("copies")
            self.count("copied before joining", not site.joined)

    def exchange(self, site, *, across=False):
        camp = self.camps[self.sites.index(site)]
        near = [
            s for s, c in zip(self.sites, self.camps, strict=True) if s is not site and (across or c == camp)
        ]
        if near:
            peer = self.rng.choice(near)
            self.pull(site, peer)
            if self.rng.random() < 0.6:
                self.pull(peer, site)

    def collect(self, site, *, across=False):
        if not site.groups:
            site.found(self.relation)
        site.collect()
        self.check(site)

    def wait(self, site, *, across=False):
        self.now += 40
        for each in self.sites:
            each.tick()


class OwnedCopies(Copies):
    """The same with rows that have owners: each site, and each copy, writes its own."""

    def owner(self, row):
        return row[0]

    def write(self, site, *, across=False):
        row = (site.name, self.rng.randrange(2 if self.relation == "K" else self.width))
        site.write([(self.rng.choice(["insert", "insert", "delete"]), self.relation, row)])
        self.check(site)


def run_copies(seed, shortcuts=frozenset(), kind=Copies):
    """One run; raises `WrongError` where the rules (or the shortcuts) fail. Returns what happened."""
    world = kind(seed, shortcuts)
    world.run(world.rng.randint(10, 40))
    world.heal()
    return world.counts
