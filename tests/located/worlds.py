"""Sites that run a located program over exchanges that break, repeat, and stores that crash and go back."""

import shutil

from tests.located.oracle import evaluate

import everview as ev
from everview.located import LocatedProgram, open_counting, open_node


class World:
    """Places at sites in files, or in memory; in the end they show what the text says, whatever happens."""

    def __init__(self, text, places, rng, *, mode="provenance", folder=None, neighbours=None):
        self.text, self.places, self.rng, self.folder = text, places, rng, folder
        self.located = LocatedProgram.parse(text, places, mode=mode)
        self.neighbours = neighbours or {}
        self.sites, self.nodes, self.backups = {}, {}, {}
        for place in places:
            self.open(place)

    def open(self, place, *, node=True):
        path = ":memory:" if self.folder is None else self.folder / f"{place}.everview"
        hosts = self.located.hosts(place, self.neighbours.get(place))
        self.sites[place] = ev.Site.open(path, self.located.program, name=place, hosts=hosts)
        if node:
            self.open_node(place)

    def open_node(self, place):
        opened = open_node if self.located.mode == "provenance" else open_counting
        self.nodes[place] = opened(self.sites[place], self.located)

    def close(self):
        for site in self.sites.values():
            site.close()

    # What may happen.

    def write(self, fact, *, present):
        relation, row = fact
        place = row[self.located.rules.location[relation]]
        (self.nodes[place].insert if present else self.nodes[place].delete)(relation, [row])

    def exchange(self, one, other, *, faulty=False):
        """One sync; a faulty one says things twice, and may break off anywhere."""
        if not faulty:
            return self.sites[one].sync(self.sites[other])
        talk = self.sites[one].replica.exchange(other)
        data = talk.open()
        while data is not None:
            answer = self.sites[other].replica.answer(data)
            if self.rng.random() < 0.3:
                answer = self.sites[other].replica.answer(data)
            if self.rng.random() < 0.2:
                return None
            data = talk.receive(answer)
        return talk.report

    def deafen(self, place):
        """The node is cut off; what arrives meanwhile it finds when it is opened again."""
        self.nodes[place].close()

    def crash(self, place):
        """The site's process ends, whatever it was doing, and begins anew."""
        self.nodes[place].close()
        self.sites[place].close()
        self.open(place)

    def back_up(self, place):
        self.sites[place].close()
        self.nodes[place].close()
        self.backups[place] = self.folder / f"{place}.backup"
        shutil.copy(self.folder / f"{place}.everview", self.backups[place])
        self.open(place)

    def restore(self, place):
        if place in self.backups:
            self.nodes[place].close()
            self.sites[place].close()
            shutil.copy(self.backups[place], self.folder / f"{place}.everview")
            self.open(place)

    # In the end.

    def settle(self, pairs=None):
        """Sync until nothing moves."""
        pairs = pairs or [(a, b) for a in self.places for b in self.places if a < b]
        for _ in range(60):
            moved = 0
            for one, other in pairs:
                report = self.exchange(one, other)
                moved += report.sent_rows + report.received_rows
            if not moved:
                return
        raise AssertionError("the sites never come to rest")

    def compare(self):
        names = self.located.relations
        base = {
            (relation, row)
            for relation in self.located.rules.base
            for place in self.places
            for row in self.sites[place].rows(f"{relation}@{place}")
        }
        found = {
            (name, row) for place in self.places for name in names for row in self.nodes[place].rows(name)
        }
        assert found == {fact for fact in evaluate(self.text, base) if fact[0] in names}
