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
    rounds = 1
    """So many rounds without a change are rest."""

    def __init__(self, seed=0, shortcuts=frozenset()):
        self.rng = random.Random(seed)
        self.shortcuts = shortcuts
        self.kinds = kinds(shortcuts)
        self.history = History()
        self.counts = Counter()
        self.now = 1_000
        self.sites, self.links, self.fuses = [], {}, set()

    # What sites ask of the world.

    def owner(self, row):
        """The name of the sites that alone write a row; None where rows have no owners."""

    def incarnation(self, name):
        self.counts["incarnations"] += 1
        return f"{name}.{self.counts['incarnations']}"

    def count(self, what, number=1):
        self.counts[what] += number

    def crash_now(self, site):
        return site in self.fuses and not self.fuses.discard(site)

    def meet_all(self, sites, name="g"):
        """These sites know each other: one group for everything."""
        members = {}
        for site in sites:
            streams = [*site.bases, *site.received]
            site.groups = {s: (name,) * len(VIEWS[s].inputs) if s in VIEWS else name for s in streams}
            site.joined = set(streams)
            members |= {(site.inc, *stream): 1 for stream in site.groups.items()}
        for site in sites:
            site.meet(members, {holder: holder[0] for holder in members})
            site.begin()
            site.end()

    def link(self, here, near):
        self.links.setdefault(here, set()).update(near)
        for there in near:
            self.links[there].add(here)

    def pull(self, reader, sender):
        """Ask and answer until the cut is applied; returns the rows that grew, and more if a group was left.

        Who leaves a group in an exchange asks again in the same: else it would meet the old group next. What
        it has was not read by then.
        """
        left, grown = False, 0
        for _ in range(200):
            joined, held = set(reader.joined), set(sender.joined)
            page = serve(sender, request(reader, sender), self.limit)
            left |= not held <= sender.joined
            grown = receive(reader, page) if page else None
            self.check(reader)
            if page is None or (sender.inc not in reader.stages and joined <= reader.joined):
                break
        reader.stages.pop(sender.inc, None)
        return (grown or 0) + (1 + self.pull(sender, reader) if left else 0)

    # Checks.

    def check(self, site):
        """A site's relations are what the declared semantics make of the writes it has seen."""
        for relation in site.bases:
            seen = site.seen[relation]
            wanted = self.history.relation(relation, seen, site.has_come)
            open_ = self.history.unsettled(relation, seen, site.has_come)
            rows = self._without(relation, site.rows(relation), open_)
            if rows != self._without(relation, wanted, open_):
                raise WrongError(f"{site.name} {relation}: {dict(rows)}, not {dict(wanted)}")
        if self.whole:
            halves = [{r for r in site.rows(name) if r[0] == "t"} for name in "BW"]
            if halves[0] != halves[1]:
                raise WrongError(f"{site.name} shows half of a transaction: {halves}")

    def _without(self, relation, rows, names):
        return {r: n for r, n in rows.items() if self.history.name(relation, r) not in names}

    def settle(self):
        quiet = 0
        for _ in range(25):
            before = self._belonging()
            moved = sum(
                self.pull(self.sites[i], self.sites[n]) for i in self.links for n in sorted(self.links[i])
            )
            same = before == self._belonging()
            quiet = quiet + 1 if not moved and same else 0
            if quiet == self.rounds:
                return
        raise WrongError("sites do not come to rest")

    def heal(self):
        """All sync with all until nothing changes; then again, when everyone has forgotten what it may."""
        self.links = {i: set(range(len(self.sites))) - {i} for i in range(len(self.sites))}
        self.now += 10_000
        self.settle()
        self.compare()
        self.forget()

    def forget(self):
        """Everyone forgets what it may, and is as it was."""
        for _ in range(2):
            for site in self.sites:
                site.collect()
                self.check(site)
            self.settle()
        self.compare()

    def _belonging(self):
        """Who is in which group, and what the groups have absorbed."""
        return [
            (s.inc, set(s.joined), dict(s.groups), {k: set(names) for k, names in s.absorbed.items()})
            for s in self.sites
        ]

    def compare(self):
        surviving = {
            relation: set().union(*(site.seen[relation] for site in self.sites)) for relation in self.kinds
        }
        plain = {r: self.history.relation(r, e, lambda _: True) for r, e in surviving.items()}
        for relation, name in self.history.loose:
            self._leave_open(plain, relation, name)
        for site in self.sites:
            for stream in sorted(site.hosts):
                wanted = plain[stream] if stream in plain else evaluate(VIEWS[stream], plain)
                if site.rows(stream) != wanted:
                    raise WrongError(f"{site.name} {stream}: {dict(site.rows(stream))}, not {dict(wanted)}")
            shared = set().union(
                *({*other.hosts, *other.circuits} for other in self.sites if other is not site)
            )
            if missing := {*site.bases, *site.received} & shared - site.joined:
                raise WrongError(f"{site.name} never joined {missing}")
        for relation in (
            "R" if any(site.skew for site in self.sites) else "RK"
        ):  # a clock behind writes before
            for name in {
                self.history.name(relation, self.history.events[e].row) for e in surviving[relation]
            }:
                self._is_latest(plain[relation], surviving[relation], relation, name)

    def _leave_open(self, plain, relation, name):
        """What the first site says of a name that the writes alone do not settle."""
        first = next(site for site in self.sites if relation in site.bases).rows(relation)
        kept = self._without(relation, plain[relation], {name})
        plain[relation] = Counter(
            kept | {r: n for r, n in first.items() if self.history.name(relation, r) == name}
        )

    def _is_latest(self, rows, numbers, relation, name):
        """The winner is one of the writes that no other write had seen."""
        there = {r for r in rows if self.history.name(relation, r) == name}
        for event in self.history.latest(numbers, name):
            if there == ({event.row} if event.operation == "insert" else set()):
                return
        raise WrongError(f"{name} of {relation} is {there}: not what one of its latest writes says")
