"""Random runs of a keyed relation at sites whose clocks are wrong, and are set right on the way."""

from tests.model.saving import Saving
from tests.model.site import Site

SKEWS = (0, 0, 0, 30, 150, 1_000, -150)


class Clocks(Saving):
    """A few sites with very few keys; everything random from one seed."""

    def __init__(self, seed, shortcuts=frozenset()):
        super().__init__(seed, shortcuts)
        self.width = self.rng.choice([1, 1, 2])
        self.limit = self.rng.choice([1, 1000])
        for i in range(self.rng.randint(2, 4)):
            site = Site(self, f"s{i}", ["K"], skew=self.rng.choice(SKEWS))
            site.begin()
            site.end()
            self.sites.append(site)

    def run(self, steps):
        moves = [(self.write, 8), (self.exchange, 12), (self.collect, 6), (self.pass_time, 3)]
        moves += [(self.set_clock, 3), (self.save, 1), (self.restore, self.rng.choice([0, 0, 1]))]
        choices, weights = zip(*moves, strict=True)
        for _ in range(steps):
            self.rng.choices(choices, weights)[0](self.rng.choice(self.sites))

    def _is_latest(self, rows, numbers, relation, name):
        """By stamps a write that had seen another may lose to it, where clocks are wrong."""

    def write(self, site):
        row = (self.rng.randrange(self.width), self.rng.randrange(2))
        site.write([(self.rng.choice(["insert", "delete"]), "K", row)])
        self.check(site)

    def pass_time(self, _):
        self.now += self.rng.choice([5, 40, 120, 700])
        for site in self.sites:
            site.tick()

    def set_clock(self, site):
        before = site.inc
        site.set_clock(self.rng.choice(SKEWS))
        self.count("set back", site.inc != before)
        self.check(site)


def run_clocks(seed, shortcuts=frozenset()):
    """One run; raises `WrongError` where the rules (or the shortcuts) fail. Returns what happened."""
    world = Clocks(seed, shortcuts)
    world.run(world.rng.randint(20, 60))
    world.heal()
    return world.counts
