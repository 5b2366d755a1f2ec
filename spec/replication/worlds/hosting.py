"""Worlds by what sites host: everything, pages of it, files, partitions, views, and views over views."""

from dataclasses import replace
from typing import ClassVar, Final

from spec.replication.endings import given_up
from spec.replication.folders import increment, mark, snapshot
from spec.replication.kinds import AddWins, Bag, Keyed, Kind, Set
from spec.replication.partitions import moving, partition, rehosted
from spec.replication.views import View, held
from spec.replication.worlds import meetings, writing
from spec.replication.worlds.meetings import PLAIN, pages
from spec.replication.worlds.sites import NOTHING
from spec.replication.worlds.world import Actions, World

NAMED: Final[tuple[Kind, ...]] = (Set(), Keyed(), AddWins(), Bag())


class Pages(World):
    """Transfers in pages, with writes and merges at both sides between them."""

    keys = 3
    steps = (30, 110)

    def actions(self) -> Actions:
        """Prefer transfers to meetings."""
        return {**PLAIN, meetings.meets: 8, pages: 60, meetings.forgets: 6}


def writes_file(world: World, i: int) -> None:
    """Write a snapshot or an increment into the folder."""
    site, chance = world.sites[i], world.random.random()
    if chance < 0.4:
        world.marks.append((mark(site.store), site))
    if chance < 0.2:
        world.kept.append((snapshot(site.store), site))
    elif chance < 0.7 and world.marks:
        own = [m for m in world.marks if m[0].incarnation == site.store.incarnation]
        cut = increment(site.store, world.random.choice(own)[0]) if own else None
        if cut:
            world.kept.append((cut, site))
            world.counted("increment")


class Folders(World):
    """Files in a folder, lost, read late and twice, and now and then a meeting."""

    def actions(self) -> Actions:
        """Prefer files to meetings."""
        others = {action: often for action, often in PLAIN.items() if action is not meetings.keeps}
        return {**others, meetings.meets: 8, meetings.delivers: 40, writes_file: 30}


def rehosts(world: World, i: int) -> None:
    """Let a site choose other partitions."""
    if i:
        site = world.sites[i]
        wanted = {name for name in world.relations if world.random.random() < 0.6} or {world.relations[0]}
        store = rehosted(site.store, world.kind, wanted, world.fresh())
        seen = {name: site.seen.get(name, NOTHING) for name in wanted & site.store.relations.keys()}
        added = wanted - site.store.relations.keys()
        halves = {p for p, touched in enumerate(world.history.transactions) if touched.keys() & added}
        world.sites[i] = replace(site, store=store, seen=seen, torn=site.torn | halves)


def moves(world: World, i: int) -> None:
    """Move a row from one partition to another."""
    names = sorted(world.sites[i].store.relations)
    if len(names) > 1:
        source, target = world.random.sample(names, 2)
        writing.transact(
            world, i, moving(world.random.randrange(world.keys), writing.value(world), source, target)
        )


class Partitions(World):
    """Sites that host some partitions of a relation, and choose others later."""

    relations = (partition("r", "eu"), partition("r", "us"), partition("r", "asia"))

    def actions(self) -> Actions:
        """Let sites choose partitions, and rows move."""
        return {**PLAIN, rehosts: 6, moves: 8, pages: 20}


class Views(World):
    """Sites that host a view without its inputs, fed by any that host it or its inputs."""

    kinds = NAMED
    steps = (15, 60)

    def actions(self) -> Actions:
        """Leave out what only view worlds with losses have."""
        return {
            writing.writes: 40,
            meetings.meets: 30,
            meetings.keeps: 6,
            meetings.delivers: 6,
            meetings.forgets: 3,
            pages: 25,
        }

    def __init__(self, seed: int) -> None:
        """Decide whether a site without inputs meets all others, or some that were there before it."""
        self.sparse = seed % 2 == 0
        self.links: dict[int, frozenset[int]] = {}
        super().__init__(seed)

    def may_read(self, reader: int, sender: int) -> bool:
        """Follow the links of sites without inputs, if they are few."""
        if not super().may_read(reader, sender):
            return False
        return not self.sparse or all(self.linked(a, b) for a, b in [(reader, sender), (sender, reader)])

    def linked(self, one: int, other: int) -> bool:
        """Whether the later of the two reaches the earlier: with inputs it reaches all that were before."""
        if one < other or not any(name.startswith("~") for name in self.sites[one].store.relations):
            return True
        if not self.links.get(one, NOTHING) & self.sites.keys():
            earlier = [i for i in self.sites if i < one]
            some = self.random.sample(earlier, min(len(earlier), self.random.choice([1, 2])))
            self.links[one] = frozenset(some)
        return other in self.links[one]

    def hosts(self) -> tuple[dict[str, Kind], dict[str, View]]:
        """Return the inputs, or the view alone."""
        hollow = bool(self.sites) and self.random.random() < 0.5
        names = ["~" + name for name in self.relations] if hollow else list(self.relations)
        return dict.fromkeys(names, self.kind), {"v": View(self.relations, self.relations)}

    def final(self) -> list[str]:
        """Compare each view with the query over its inputs, and inputs without values with whole ones."""
        return super().final() + wrong_views(self) + wrong_inputs(self)


def wrong_views(world: World) -> list[str]:
    """Return which views are not what their query gives over the rows."""
    found: list[str] = []
    for site in world.sites.values():
        for view in site.store.views.values():
            names: list[dict[object, set[object]]] = []
            for name in view.inputs:
                relation = held(site.store.relations, name)
                by_key: dict[object, set[object]] = {}
                for key, group in relation.groups().items():
                    by_key[key] = set(relation.kind.winners(group))
                names.append(by_key)
            right: set[tuple[object, ...]] = set()
            for key in set(names[0]).intersection(*names[1:]):
                rows: list[tuple[object, ...]] = [()]
                for by_key in names:
                    rows = [(*row, name) for row in rows for name in by_key[key]]
                right.update(rows)
            if view.shown(site.store.relations) != right:
                found.append("a view that is not its query")
    return found


def wrong_inputs(world: World) -> list[str]:
    """Return which inputs without values differ from those of a site that holds them whole."""
    found: list[str] = []
    stores = [site.store for site in world.sites.values()]
    for name in world.relations:
        whole = [store.relations[name].vector for store in stores if name in store.relations]
        parts = [store.relations["~" + name].vector for store in stores if "~" + name in store.relations]
        found += ["an input that differs from the whole one" for part in parts if whole and part != whole[0]]
    return found


class Losses(Views):
    """Views, and stores that are copied, put back and lost for good, which somebody says once.

    Often sites without inputs may only read: nobody with inputs hears what they say.
    """

    def __init__(self, seed: int) -> None:
        """Decide whether they may only read; then all of them meet, or some would never hear of a loss."""
        self.only_read = seed % 4 == 3
        super().__init__(seed)

    def may_read(self, reader: int, sender: int) -> bool:
        """Let nobody with inputs read those without, if these may only read."""
        hollow = [any(n.startswith("~") for n in self.sites[i].store.relations) for i in (reader, sender)]
        return super().may_read(reader, sender) and not (self.only_read and hollow == [False, True])

    def actions(self) -> Actions:
        """Let everything happen."""
        return {**PLAIN, pages: 20}

    def gone(self) -> set[str]:
        """Return the incarnations that are lost for good."""
        return self.lost - {site.store.incarnation for site in self.sites.values()}

    def settle(self) -> None:
        """Say at some site which stores are lost, whatever it hosts; then let all meet."""
        for lost in sorted(self.gone()):
            i = self.random.choice(sorted(self.sites))
            self.sites[i] = replace(self.sites[i], store=given_up(self.sites[i].store, lost, self.relations))
        super().settle()


class Nested(Views):
    """A view over views: some sites derive its parts, others the whole from parts that others derived."""

    relations = ("r", "s", "t", "u")
    parts: ClassVar[dict[str, View]] = {
        "r2": View(("r", "s"), ("r", "s")),
        "r4": View(("t", "u"), ("t", "u")),
    }
    whole = View(("r2", "r4"), ("r", "s", "t", "u"))
    keys = 1

    def __init__(self, seed: int) -> None:
        """Let all meet: few links might leave out an input."""
        super().__init__(2 * seed + 1)

    def hosts(self) -> tuple[dict[str, Kind], dict[str, View]]:
        """Return everything, or one part and its inputs, or one part alone, or views only."""
        every = {**self.parts, "r5": self.whole}
        choice = (
            self.random.choice(["inputs", "part", "hollow part", "views", "r5"]) if self.sites else "inputs"
        )
        if choice in {"part", "hollow part"}:
            title = self.random.choice(list(self.parts))
            prefix = "~" if choice == "hollow part" else ""
            return {prefix + n: self.kind for n in self.parts[title].inputs}, {title: self.parts[title]}
        prefix = "" if choice == "inputs" else "~"
        views = {"r5": self.whole} if choice == "r5" else every
        return {prefix + name: self.kind for name in self.relations}, views
