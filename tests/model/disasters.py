"""Random runs in which every store of a group is put back from a backup, each to another time.

The driver leaves one site of a group as it is, and there everything is known that was ever settled in the
group. Here nobody is left who knows.
"""

from tests.model.saving import Saving
from tests.model.site import Site

KINDS = "RKBW"


class Disasters(Saving):
    """A few sites with one relation; everything random from one seed."""

    def __init__(self, seed, shortcuts=frozenset(), kinds=KINDS):
        super().__init__(seed, shortcuts)
        self.relation = self.rng.choice(kinds)
        self.width = self.rng.choice([1, 1, 2])
        self.limit = self.rng.choice([1, 1000])
        for i in range(self.rng.randint(2, 4)):
            site = Site(self, f"s{i}", [self.relation])
            site.begin()
            site.end()
            self.sites.append(site)

    def run(self, steps):
        """Write, sync, forget, save; all are put back; then the same again, with single stores put back."""
        disaster = self.rng.randint(steps // 2, steps)
        for step in range(steps):
            if step == disaster:
                for site in self.sites:
                    self.restore(site)
            moves = (self.write, self.exchange, self.collect, self.save)
            self.rng.choices(moves, (6, 10, 6, 2))[0](self.rng.choice(self.sites))

    def write(self, site):
        row = (self.rng.randrange(self.width), self.rng.randrange(2) if self.relation == "K" else 0)
        site.write([(self.rng.choice(["insert", "delete"]), self.relation, row)])
        self.check(site)


def run_disasters(seed, shortcuts=frozenset(), kinds=KINDS):
    """One run; raises `WrongError` where the rules (or the shortcuts) fail. Returns what happened."""
    world = Disasters(seed, shortcuts, kinds)
    world.run(world.rng.randint(20, 60))
    world.heal()
    return world.counts
