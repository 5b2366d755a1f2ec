"""A random world: sites do what chance says, and are checked after every step."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations, permutations
from typing import ClassVar, TypeAlias

from spec.replication.cuts import Cut
from spec.replication.folders import Mark
from spec.replication.incarnations import renewed
from spec.replication.kinds import AddWins, Bag, Keyed, Kind, Set
from spec.replication.lattices import Greatest, Merged
from spec.replication.rules import Rule, holds
from spec.replication.stores import created, opened
from spec.replication.views import View
from spec.replication.worlds import meetings
from spec.replication.worlds.checks import wrong_rows, wrong_transactions
from spec.replication.worlds.history import History
from spec.replication.worlds.sites import NOTHING, Reading, Site

KINDS: tuple[Kind, ...] = (Set(), Keyed(), AddWins(), Bag(), Merged(), Greatest())


class World:
    """A world of sites that host everything; the worlds of other modules change what they say differently."""

    kinds: ClassVar[tuple[Kind, ...]] = KINDS
    relations: ClassVar[tuple[str, ...]] = ("r", "s")
    keys = 2
    steps = (15, 60)
    most = 6
    exact = True
    """Whether equal vectors always mean equal rows here."""

    def __init__(self, seed: int) -> None:
        """Make the first sites."""
        self.random = random.Random(seed)
        self.kind = self.random.choice(self.kinds)
        self.forgets = self.random.random() < 0.5
        self.history = History()
        self.births = self.lives = 0
        self.sites: dict[int, Site] = {}
        self.backups: dict[int, Site] = {}
        self.kept: list[tuple[Cut, Site]] = []
        self.readings: list[Reading] = []
        self.marks: list[tuple[Mark, Site]] = []
        self.lost: set[str] = set()
        self.count: dict[str, int] = {}
        self.wrong: list[str] = []
        for _ in range(self.random.choice([2, 3, 4])):
            self.join()

    def actions(self) -> "Actions":
        """Return what may happen, and how often."""
        return meetings.PLAIN

    def run(self) -> list[str]:
        """Let chance act, then let all meet until nothing is new; return what went wrong."""
        actions = self.actions()
        chosen = self.random.choices(
            list(actions), list(actions.values()), k=self.random.randint(*self.steps)
        )
        for action in chosen:
            before = dict(self.sites)
            action(self, self.random.choice(list(self.sites)))
            for i, site in self.sites.items():
                if before.get(i) is not site:
                    self.wrong += self.check(site)
            if self.wrong:
                return self.wrong
        self.settle()
        return self.wrong + self.final()

    def settle(self) -> None:
        """Let everybody meet everybody until a round brings no news."""
        for _ in range(10):
            before = {i: site.store.version for i, site in self.sites.items()}
            for reader, sender in permutations(self.sites, 2):
                meetings.read(self, reader, sender)
            if before == {i: site.store.version for i, site in self.sites.items()}:
                return
        self.wrong.append("they never come to rest")

    def check(self, site: Site) -> list[str]:
        """Return what is wrong with a site at any moment."""
        wrong = wrong_rows(self.history, site.store, site.seen)
        return wrong + wrong_transactions(self.history, site.store, site.torn)

    def final(self) -> list[str]:
        """Return what is wrong when all have met."""
        found: list[str] = []
        for a, b in combinations(self.sites.values(), 2):
            for name in a.store.relations.keys() & b.store.relations.keys():
                if a.store.relations[name].rows != b.store.relations[name].rows:
                    found.append("diverged")
                if a.store.relations[name].vector != b.store.relations[name].vector:
                    found.append("never seen")
        for site in self.sites.values():
            for name, relation in site.store.relations.items():
                if not name.startswith("~"):
                    found += self.history.wrong(self.kind, site.seen.get(name, NOTHING), relation.shown())
        return found

    def counted(self, what: str) -> None:
        """Count what happens, so that a run can say what it has tried."""
        self.count[what] = self.count.get(what, 0) + 1

    # What other worlds change ----------------------------------------------------------------
    def hosts(self) -> tuple[dict[str, Kind], dict[str, View]]:
        """Return what a new site hosts."""
        return dict.fromkeys(self.relations, self.kind), {}

    def may_read(self, reader: int, sender: int) -> bool:
        """Whether the two have a connection."""
        return reader != sender

    def renew(self, i: int) -> bool:
        """Give a site that went back a new incarnation; here no site goes back unnoticed."""
        self.wrong.append("a store is told that it went back, and did not")
        return i < 0

    def before_read(self, i: int, source: Site) -> None:
        """Note who reads."""

    def before_merge(self, i: int, cut: Cut, source: Site) -> None:
        """Note what will happen."""

    def after_merge(self, i: int, before: Site, sender: str) -> None:
        """Let the site write in answer to what it has merged."""

    # Sites -----------------------------------------------------------------------------------
    def fresh(self) -> str:
        """Return a new incarnation."""
        self.births += 1
        return f"i{self.births:03d}"

    def join(self) -> None:
        """Add a site."""
        if len(self.sites) < self.most:
            store = opened(created(self.fresh(), *self.hosts()))
            self.sites[max(self.sites, default=-1) + 1] = Site(store, life=self.new_life())

    def reborn(self, site: Site) -> Site:
        """Return the site as a store that notices when it is opened that it went back or was copied."""
        name = self.fresh() if holds(Rule.RENEWED) else site.store.incarnation
        return replace(site, store=renewed(opened(site.store), name), life=self.new_life())

    def new_life(self) -> int:
        """Return the number of one opening of a store."""
        self.lives += 1
        return self.lives


Action: TypeAlias = Callable[[World, int], None]
Actions: TypeAlias = Mapping[Action, float]
