"""Random runs of stores that are copied, put back and given up, whose transactions write to two relations.

Bags are settled otherwise than the other kinds. Should one go to another group without the relations beside
it, then somebody would see half of a transaction.
"""

from tests.model.saving import Saving
from tests.model.site import Site


class Transactions(Saving):
    """A few sites with a bag and another relation; everything random from one seed."""

    whole = True

    def __init__(self, seed, shortcuts=frozenset()):
        super().__init__(seed, shortcuts)
        self.limit = self.rng.choice([1, 1000])
        self.camps, self.made = {}, 0
        for i in range(self.rng.randint(2, 4)):
            self.add(Site(self, f"s{i}", "BW"), i % 2)

    def add(self, site, camp):
        site.begin()
        site.end()
        self.sites.append(site)
        self.camps[site] = camp

    def run(self, steps):
        """Write, save and copy first; then each camp for itself; then all meet."""
        early, late = self.rng.randint(1, 8), self.rng.randint(steps // 2, steps)
        first = {self.write: 3, self.save: 1, self.copy: 1}
        then = {
            self.write: 6,
            self.exchange: 12,
            self.collect: 4,
            self.save: 1,
            self.restore: 3,
            self.copy: 1,
            self.expire: 3,
        }
        for step in range(steps):
            if step == late:
                self.camps = dict.fromkeys(self.camps, 0)
            moves = first if step < early else then
            self.rng.choices(list(moves), list(moves.values()))[0](self.rng.choice(self.sites))

    def near(self, site):
        """Whom a site can meet."""
        return [s for s in self.sites if s is not site and self.camps[s] == self.camps[site]]

    def write(self, site):
        """Nothing is ever deleted, so a half that is missing is not one that is dead elsewhere."""
        self.made += 1
        site.write([("insert", relation, ("t", self.made)) for relation in "BW"])
        self.check(site)

    def copy(self, site):
        if len(self.sites) < 5:
            twin = Site(self, site.name, site.hosts)
            twin.load(site.backup())
            twin.name = f"{site.name}c{len(self.sites)}"
            twin.renew()
            self.add(twin, 1 - self.camps[site])

    def expire(self, site):
        """Anyone but the first, which nobody gives up."""
        first = f"{self.sites[0].name}."
        known = sorted({inc for inc, *_ in site.members if inc != site.inc and not inc.startswith(first)})
        if known and site.joined:
            site.expire(self.rng.choice(known))

    def settle(self):
        """Who waits for a site that will never come back gives it up, when it has heard of it."""
        for _ in range(2):
            living = {site.inc for site in self.sites}
            for site in self.sites:
                awaited = {inc for inc, *_ in site.members} if site.bound else set()
                for inc in sorted(awaited - living - site.expired_at.keys()):
                    site.expire(inc)
            super().settle()


def run_transactions(seed, shortcuts=frozenset()):
    """One run; raises `WrongError` where the rules (or the shortcuts) fail. Returns what happened."""
    world = Transactions(seed, shortcuts)
    world.run(world.rng.randint(20, 60))
    world.heal()
    return world.counts
