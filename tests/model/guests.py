"""Random runs of guests: sites find files of others that do not list them, and some are copied.

In the end all are in a line, where a guest may reach its sponsor only through others that wait themselves.
"""

from itertools import pairwise

from tests.model.copies import Copies
from tests.model.ground import WrongError
from tests.model.sync import push, receive


class Guests(Copies):
    """Copies, with files that anybody may find later, in any order."""

    rounds = 5  # in a line, word of who is listed takes as many rounds as there are sites

    def __init__(self, seed, shortcuts=frozenset()):
        super().__init__(seed, shortcuts)
        self.files = []

    def run(self, steps):
        early, late = self.rng.randint(0, 4), self.rng.randint(steps // 3, steps)
        moves = (self.write, self.exchange, self.collect, self.copy, self.wait, self.publish, self.find)
        for step in range(steps):
            site = self.rng.choice(self.sites)
            if step < early:
                self.rng.choice([self.write, self.write, self.copy])(site)
            else:
                self.rng.choices(moves, (5, 6, 4, 1, 1, 3, 6))[0](site, across=step >= late)

    def publish(self, site, *, across=False):
        if not site.groups and self.relation not in site.bound and self.rng.random() < 0.5:
            site.found(self.relation)
        if site.groups:
            self.files.append(push(site, self.rng.choice([0, 0, 0, self.rng.randint(0, site.head)])))

    def find(self, site, *, across=False):
        if self.files:
            page = self.rng.choice(self.files)
            if page.sender != site.inc:
                receive(site, page)
                self.check(site)

    def heal(self):
        """In a line first. Who must return may wait there, for one behind another who must; nobody else."""
        order = self.rng.sample(range(len(self.sites)), len(self.sites))
        self.links = {i: set() for i in order}
        for one, other in pairwise(order):
            self.link(one, {other})
        self.now += 10_000
        self.settle()
        if not any(site.bound for site in self.sites):
            self.compare()
            self.forget()
        elif any(site.provisional and not self._is_cut_off(place) for place, site in enumerate(self.sites)):
            raise WrongError("a guest waits, and meets members")
        super().heal()

    def _is_cut_off(self, place):
        """Whether a site meets nobody who is in a group."""
        return not any(self.sites[near].joined for near in self.links[place])
