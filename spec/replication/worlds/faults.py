"""Worlds of stores that go back in time without noticing it, or are copied so."""

from dataclasses import replace
from itertools import permutations

from spec.replication.cuts import Cut
from spec.replication.incarnations import renamed_dot, renewed
from spec.replication.relations import START
from spec.replication.repairs import repaired
from spec.replication.stores import opened
from spec.replication.vectors import Dot
from spec.replication.worlds import meetings, writing
from spec.replication.worlds.checks import wrong_rows
from spec.replication.worlds.hosting import Losses, wrong_views
from spec.replication.worlds.meetings import PLAIN, pages
from spec.replication.worlds.sites import Site
from spec.replication.worlds.world import Actions, World


def goes_back(world: World, i: int) -> None:
    """Put a backup back, and go on as if nothing had happened."""
    if i in world.backups:
        backup, before = world.backups[i], world.sites[i].store.incarnation
        if backup.back:
            world.exact = False
        world.sites[i] = replace(backup, store=opened(backup.store), life=world.new_life(), back=True)
        world.lost.add(before)
        world.counted("went back")


def reopens(world: World, i: int) -> None:
    """Close a store and open it again."""
    site = world.sites[i]
    if conflicts(world, i):
        world.exact = False
    world.sites[i] = replace(site, store=opened(site.store), life=world.new_life())


def doubles(world: World, i: int) -> None:
    """Copy a store, and let both go on under one incarnation."""
    if len(world.sites) < world.most:
        site = world.sites[i]
        if site.back:
            world.exact = False
        world.sites[max(world.sites) + 1] = replace(
            site, store=opened(site.store), life=world.new_life(), back=True
        )
        world.sites[i] = replace(site, store=opened(site.store), life=world.new_life(), back=True)
        world.counted("doubled")


def written_since(site: Site) -> set[str]:
    """Return the relations in which a site has written since its store was opened."""
    me, last = site.store.incarnation, site.store.opened
    return {n for n, r in site.store.relations.items() if r.vector.get(me, 0) > last.get(n, 0)}


def conflicts(world: World, i: int) -> bool:
    """Whether a store that went back has written numbers that are known elsewhere with other rows."""
    site = world.sites[i]
    me, last = site.store.incarnation, site.store.opened
    others = [s.store for j, s in world.sites.items() if j != i] + [s.store for s in world.backups.values()]
    vectors = [(name, r.vector) for store in others for name, r in store.relations.items()]
    vectors += [(name, part.vector) for cut, _ in world.kept for name, part in cut.parts.items()]
    staged = [(n, rows) for reading in world.readings for n, rows in reading.transfer.rows.items()]
    names = [(n, dot) for n, rows in staged for dot in rows]
    known = {n.removeprefix("~") for n, v in vectors if v.get(me, 0) > last.get(n.removeprefix("~"), 0)}
    known |= {
        n for n, dot in names if dot.incarnation == me and dot.number > last.get(n.removeprefix("~"), 0)
    }
    return site.back and bool(written_since(site) & known)


class Rewinds(Losses):
    """Stores go back unnoticed.

    A world is exact until numbers with two meanings are believed; then stores only become equal again.
    """

    def __init__(self, seed: int) -> None:
        """Let all meet: a store must hear from those that know more of it, views too."""
        super().__init__(2 * seed + 1)
        self.only_read = False
        self.told: set[int] = set()

    def actions(self) -> Actions:
        """Let stores go back, and be opened again."""
        plain = {action: often for action, often in PLAIN.items() if action is not meetings.repairs}
        return {
            **plain,
            goes_back: 8,
            reopens: 3,
            doubles: 1,
            writing.writes: 50,
            meetings.backs_up: 6,
            meetings.meets: 25,
            pages: 15,
        }

    def renew(self, i: int) -> bool:
        """Give a store that notices a new incarnation."""
        site, name = self.sites[i], self.fresh()
        if site.life in self.told:
            self.exact = False  # the rows are elsewhere under their old dots, too
        me, last = site.store.incarnation, site.store.opened

        def renamed(relation: str, dot: Dot) -> Dot:
            return renamed_dot(dot, me, last.get(relation, 0), name)

        self.history.rename(site.life, renamed)
        self.sites[i] = replace(site, store=renewed(site.store, name), back=False, life=self.new_life())
        self.lost.add(me)
        self.counted("noticed")
        return True

    def settle(self) -> None:
        """Let all meet again if a store has noticed only now that it went back."""
        known: set[str] | None = None
        while known != self.gone():
            known = self.gone()
            super().settle()

    def before_read(self, i: int, source: Site) -> None:
        """Find out whether a reader of lost versions believes the store that has lost them."""
        cursors = [
            r.cursors.get(source.store.incarnation, START) for r in self.sites[i].store.relations.values()
        ]
        if any(c.version and source.store.tags.get(c.version) != c.tag for c in cursors):
            self.wrong.append("a store that went back was believed by a reader of its lost versions")

    def before_merge(self, i: int, cut: Cut, source: Site) -> None:
        """Find out whether somebody believes a store that has not noticed that it went back."""
        if conflicts(self, i):
            self.exact = False
        for j, site in self.sites.items():
            if site.store.incarnation == cut.sender and conflicts(self, j):
                self.exact = False
        if source.back and written_since(source):
            self.told.add(source.life)
        if source.back and source not in self.sites.values():
            self.exact = False

    def check(self, site: Site) -> list[str]:
        """Check rows while nothing has been believed. Transactions cannot be: lost dots may be used again."""
        return wrong_rows(self.history, site.store, site.seen) if self.exact else []

    def reborn(self, site: Site) -> Site:
        """Note whether a copy or backup is of a store that has not noticed."""
        if site.back:
            self.exact = False
        return super().reborn(site)

    def final(self) -> list[str]:
        """Check everything where nothing was believed; otherwise repair, and check that all are equal."""
        if self.exact:
            self.counted("exact")
            return super().final()
        self.counted("believed")
        found: list[str] = []
        for a, b in permutations(self.sites.values(), 2):
            for name in a.store.relations.keys() & b.store.relations.keys():
                x, y = a.store.relations[name], b.store.relations[name]
                if x.vector != y.vector:
                    found.append("never seen")
                if x.rows != y.rows:
                    self.counted("alarm")
                    if x.digest == y.digest:
                        found.append("no alarm")
        leader = self.sites[min(self.sites)].store
        for i, site in self.sites.items():
            store = site.store
            for name in sorted(store.relations):
                store = repaired(store, name, leader) or store
            self.sites[i] = replace(site, store=store)
        self.settle()
        for site in self.sites.values():
            for name, relation in site.store.relations.items():
                whole = leader.relations[name.removeprefix("~")].rows
                if {
                    d: r if name in leader.relations else relation.kind.hollow(r) for d, r in whole.items()
                } != relation.rows:
                    found.append("repair did not make them equal")
        return found + wrong_views(self)
