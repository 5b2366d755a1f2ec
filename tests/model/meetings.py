"""How the sites of a run come together: as one group, as strangers, in a folder only, or as two groups."""

from tests.model.ground import Ground
from tests.model.sync import push, receive

KNOWN, FRESH, FOLDER, HALVES = "known", "fresh", "folder", "halves"


class Meetings(Ground):
    """Links between sites, first contacts, files in a folder, and the day two groups meet."""

    def __init__(self, seed, shortcuts):
        super().__init__(seed, shortcuts)
        self.meeting = KNOWN
        self.sides, self.bridged = [], True

    def introduce(self):
        """After the first sites are there: who knows whom. Strangers may have written before they meet."""
        if self.meeting == KNOWN:
            self.meet_all(self.sites)
        elif self.meeting == HALVES:
            for side in (0, 1):
                members = [s for s, at in zip(self.sites, self.sides, strict=True) if at == side]
                self.meet_all(members, f"g{self.rng.randrange(100):02}{side}")
        self.anchors = {self.sites[0], self.sites[self.sides.index(1)] if 1 in self.sides else self.sites[0]}

    def add(self, site, side=None):
        """Whole: a tree. Else: all reach their side's first, and some each other; views may feed views."""
        side = self.rng.choice([0, *self.sides]) if side is None else side
        around = [i for i, at in enumerate(self.sides) if at == side]
        near = set()
        if around:
            near = {self.rng.choice(around) if self.whole else around[0]}
            near |= {i for i in around if not self.whole and self.rng.random() < 0.4}
            viewers = [i for i in around if self.sites[i].hosts >= site.hosts and not self.sites[i].bases]
            if viewers and self.rng.random() < 0.3:
                near = {self.rng.choice(viewers)}
        site.begin()
        site.end()
        self.link(len(self.sites), near)
        self.sites.append(site)
        self.sides.append(side)

    def bridge(self):
        """The two halves meet: their first sites, and one more pair."""
        if not self.bridged:
            self.bridged = True
            first = self.sides.index(1)
            self.link(0, {first})
            if not self.whole and self.rng.random() < 0.5:
                ends = [self.rng.choice([i for i, at in enumerate(self.sides) if at == s]) for s in (0, 1)]
                self.link(ends[0], {ends[1]})
            self.count("bridges")

    def file(self, site, start):
        """A batch for a folder. Who finds none there, or none that it can use, founds."""
        if not site.groups and (not self.counts["files"] or self.rng.random() < 0.1):
            for relation in site.bases:
                site.found(relation)
        self.count("files")
        return push(site, start)

    def settle(self):
        """In a folder, who finds nothing founds; and a name must travel to and fro before one is listed."""
        if self.meeting == FOLDER:
            self.rounds = 3
            self._found_missing()
        super().settle()
        if self.meeting == FOLDER and self._found_missing():  # the only member has heard that it was given up
            super().settle()

    def _found_missing(self):
        missing = [
            relation
            for relation in self.sites[0].bases
            if not any(relation in site.joined for site in self.sites)
        ]
        for relation in missing:
            self.sites[0].found(relation)
        return missing

    def pull(self, reader, sender):
        if self.meeting != FOLDER:
            return super().pull(reader, sender)
        grown = receive(reader, self.file(sender, 0))
        self.check(reader)
        return grown or 0
