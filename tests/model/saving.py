"""Runs in which stores are put back from backups that were made on the way."""

from tests.model.ground import Ground


class Saving(Ground):
    """What random runs with backups have in common."""

    views = False

    def __init__(self, seed, shortcuts=frozenset()):
        super().__init__(seed, shortcuts)
        self.backups = {}

    def near(self, site):
        """Whom a site can meet."""
        return [other for other in self.sites if other is not site]

    def exchange(self, site):
        if near := self.near(site):
            peer = self.rng.choice(near)
            self.pull(site, peer)
            if self.rng.random() < 0.6:
                self.pull(peer, site)

    def collect(self, site):
        site.collect()
        self.check(site)

    def save(self, site):
        self.backups.setdefault(site, []).append(site.backup())

    def restore(self, site):
        if site in self.backups:
            site.restore(self.rng.choice(self.backups[site]))
            self.count("restores")
            self.check(site)
