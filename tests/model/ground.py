"""What runs are made of: the time, the sites and their links; pulling, and checking against the oracle."""

import random
from collections import Counter

from tests.model.oracle import History
from tests.model.relations import kinds
from tests.model.sync import receive, request, serve
from tests.model.views import VIEWS, evaluate


class WrongError(AssertionError):
    """A run that breaks the specification."""


class Ground:
    """Sites over one program; everything random comes from one seed."""

    whole = False
    views = True
    limit = 1000

    def __init__(self, seed=0, shortcuts=frozenset()):
        self.rng = random.Random(seed)
        self.shortcuts = shortcuts
        self.kinds = kinds(shortcuts)
        self.history = History()
        self.counts = Counter()
        self.now = 1_000
        self.sites, self.links, self.fuses = [], {}, set()

    # What sites ask of the world.

    def incarnation(self, name):
        self.counts["incarnations"] += 1
        return f"{name}.{self.counts['incarnations']}"

    def count(self, what, number=1):
        self.counts[what] += number

    def crash_now(self, site):
        return site in self.fuses and not self.fuses.discard(site)

    def meet_all(self):
        """The founders know each other: membership is explicit."""
        members = {holder: 1 for site in self.sites for holder in site.members}
        for site in self.sites:
            site.meet(members, {})
            site.begin()
            site.end()

    def link(self, here, near):
        self.links.setdefault(here, set()).update(near)
        for there in near:
            self.links[there].add(here)

    def pull(self, reader, sender):
        """Ask and answer until the cut is applied; returns the rows that grew."""
        for _ in range(200):
            page = serve(sender, request(reader, sender), self.limit)
            grown = receive(reader, page) if page else None
            self.check(reader)
            if page is None or sender.inc not in reader.stages:
                break
        reader.stages.pop(sender.inc, None)
        return grown or 0

    # Checks.

    def check(self, site):
        """A site's relations are what the declared semantics make of the writes it has seen."""
        for relation in site.bases:
            wanted = self.history.relation(relation, site.seen[relation], site.has_come)
            if site.rows(relation) != wanted:
                raise WrongError(f"{site.name} {relation}: {dict(site.rows(relation))}, not {dict(wanted)}")
        if self.whole:
            halves = [{r for r in site.rows(name) if r[0] == "t"} for name in "BW"]
            if halves[0] != halves[1]:
                raise WrongError(f"{site.name} shows half of a transaction: {halves}")

    def settle(self):
        quiet = 0
        for _ in range(25):
            before = {(s.inc, *sorted(s.joined)) for s in self.sites}
            moved = sum(
                self.pull(self.sites[i], self.sites[n]) for i in self.links for n in sorted(self.links[i])
            )
            same = before == {(s.inc, *sorted(s.joined)) for s in self.sites}
            quiet = quiet + 1 if not moved and same else 0
            if quiet == 1:
                return
        raise WrongError("sites do not come to rest")

    def compare(self):
        surviving = {
            relation: set().union(*(site.seen[relation] for site in self.sites)) for relation in self.kinds
        }
        plain = {r: self.history.relation(r, e, lambda _: True) for r, e in surviving.items()}
        for site in self.sites:
            for stream in sorted(site.hosts):
                wanted = plain[stream] if stream in plain else evaluate(VIEWS[stream], plain)
                if site.rows(stream) != wanted:
                    raise WrongError(f"{site.name} {stream}: {dict(site.rows(stream))}, not {dict(wanted)}")
            if missing := site.hosts - site.joined:
                raise WrongError(f"{site.name} never joined {missing}")
        for row in {self.history.events[e].row for e in surviving["R"]}:
            latest = self.history.latest(surviving["R"], row)
            if ("insert" if plain["R"][row] else "delete") not in latest:
                raise WrongError(f"{row} of R is not what its latest writes say: {latest}")
