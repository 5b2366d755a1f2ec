"""Random runs of views next to base stores that are put back, copied, given up, or gone for ever.

The driver's sites all reach a store that keeps its file, and seldom is it a view alone that has heard of what
another then loses. Here it often is; and some views know only other views.
"""

from tests.model.saving import Saving
from tests.model.site import Site
from tests.model.views import VIEWS


class Losses(Saving):
    """A store that keeps its file, one or two that may not, and a few views; all random from one seed."""

    views = True

    def __init__(self, seed, shortcuts=frozenset()):
        super().__init__(seed, shortcuts)
        rng = self.rng
        self.view = rng.choice(sorted(VIEWS))
        self.focus = VIEWS[self.view].inputs
        self.width, self.depth = rng.choice([1, 2, 3]), rng.choice([1, 2])
        self.limit = rng.choice([1, 1000])
        self.gone = set()
        bases = rng.randint(2, 3)
        for i in range(bases):
            self.add(Site(self, f"s{i}", sorted(self.focus)), {0} if i else set())
        for i in range(rng.randint(1, 3)):
            near = set(rng.sample(range(len(self.sites)), rng.choice([1, 1, 2])))
            mixed = [rng.choice(self.focus)] if rng.random() < 0.3 else []
            if mixed:
                near |= {0}
            self.add(Site(self, f"w{i}", [self.view, *mixed]), near)
        if rng.random() < 0.6:
            self.meet_all(self.sites)

    def add(self, site, near):
        site.begin()
        site.end()
        self.link(len(self.sites), near)
        self.sites.append(site)

    def near(self, site):
        return [self.sites[at] for at in sorted(self.links[self.sites.index(site)])]

    def run(self, steps):
        moves = [
            (self.write, 8),
            (self.exchange, 12),
            (self.collect, self.rng.choice([0, 3])),
            (self.wait, 1),
        ]
        moves += [(self.save, 3), (self.restore, 2), (self.expire, self.rng.choice([0, 1]))]
        moves += [(self.leave, self.rng.choice([0, 1]))]
        choices, weights = zip(*moves, strict=True)
        for _ in range(steps):
            self.rng.choices(choices, weights)[0](self.rng.choice(self.sites))

    def write(self, site):
        if site.bases:
            row = (self.rng.randrange(self.width), self.rng.randrange(self.depth))
            site.write([(self.rng.choice(["insert", "insert", "delete"]), self.rng.choice(site.bases), row)])
            self.check(site)

    def restore(self, site):
        if site is not self.sites[0]:
            was = site.inc
            super().restore(site)
            if (
                was not in site.retired and was != site.inc
            ):  # the backup is of an earlier one, and knows nothing of it
                self.gone.add(was)

    def expire(self, site):
        victim = self.rng.choice(self.sites[1:])
        if victim is not site and site is self.sites[0]:
            site.expire(victim.inc)
            self.count("expiries")

    def leave(self, site):
        """A store is gone for ever; its neighbours reach the one that stays."""
        at = self.sites.index(site)
        if at and not self.counts["gone"] and len(site.bases) == len(self.focus):
            self.gone |= {site.inc, *site.retired}
            self.sites.remove(site)
            self.backups.pop(site, None)
            shifted = lambda i: i - (i > at)
            near = self.links.pop(at)
            self.links = {shifted(i): {shifted(n) for n in ns - {at}} for i, ns in self.links.items()}
            for other in near - {0}:
                self.link(shifted(other), {0})
            self.count("gone")

    def wait(self, _):
        self.now += 40
        for site in self.sites:
            site.tick()

    def heal(self):
        """Who is gone is given up; neighbours sync until nothing moves."""
        self.now += 10_000
        self.settle()
        for site in self.sites:
            for inc in self.gone:
                site.expire(inc)
        self.settle()
        self.compare()
        self.forget()


def run_losses(seed, shortcuts=frozenset()):
    """One run; raises `WrongError` where the rules (or the shortcuts) fail. Returns what happened."""
    world = Losses(seed, shortcuts)
    world.run(world.rng.randint(10, 60))
    world.heal()
    return world.counts
