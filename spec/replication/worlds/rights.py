"""Worlds of servers that refuse what some sites write, and of owners that publish their states."""

from collections import Counter
from dataclasses import replace
from typing import cast

from spec.replication.kinds import Bag, Set
from spec.replication.publications import Published, State, published
from spec.replication.refusals import NONE, Refused, undone
from spec.replication.worlds import meetings, writing
from spec.replication.worlds.meetings import PLAIN, pages
from spec.replication.worlds.sites import NOTHING, Site
from spec.replication.worlds.world import Actions, World


class Refusals(World):
    """Servers refuse what some sites write: all stores agree, and nothing that is refused stays.

    Often all sites meet one server only. What it shows then never changes by what it refuses.
    """

    def __init__(self, seed: int) -> None:
        """Choose which incarnations are refused, and where."""
        self.star = seed % 2 == 0
        self.both = seed % 3 == 0
        self.refused: dict[str, Refused] = {}
        super().__init__(seed)
        if len(self.sites) < 3:
            self.join()
        names = [site.store.incarnation for site in self.sites.values()]
        one = Refused(frozenset(names[-1:]), frozenset(names[-1:]))
        if not self.both:
            one = self.random.choice([replace(one, inserts=NONE), replace(one, removals=NONE)])
        servers = names[:1] if self.star or isinstance(self.kind, Bag) else names[: len(names) - 1][:2]
        self.refused = dict.fromkeys(servers, one)

    def actions(self) -> Actions:
        """Keep the sites: rights belong to incarnations."""
        gone = {meetings.restores, meetings.copies, meetings.leaves, meetings.repairs}
        if self.star:  # a cut that comes from elsewhere would bring the rows of others
            gone |= {meetings.keeps, meetings.delivers}
        return {**{action: often for action, often in PLAIN.items() if action not in gone}, pages: 15}

    def may_read(self, reader: int, sender: int) -> bool:
        """Let all meet the server only, if the world is a star."""
        return super().may_read(reader, sender) and not (self.star and reader and sender)

    def after_merge(self, i: int, before: Site, sender: str) -> None:
        """Undo what is refused."""
        site = self.sites[i]
        refused = self.refused.get(site.store.incarnation)
        if refused is None:
            return
        store, written = undone(before.store, site.store, sender, refused)
        writing.wrote(self, i, store, written)
        for _ in written:
            self.counted("undone")
        for name, relation in store.relations.items() if self.star else ():
            shown, showed = Counter(relation.shown()), Counter(before.store.relations[name].shown())
            more, less = shown - showed, showed - shown
            ambiguous = self.kind.updates or self.forgets  # of two rows the one that was shown may go
            if ambiguous and not self.kind.separate and sender not in refused.removals:
                there = {key for key, group in relation.groups().items() if self.kind.winners(group)}
                more = Counter(there - before.store.relations[name].groups().keys())
            if (sender in refused.inserts and more) or (sender in refused.removals and less):
                self.wrong.append("a refused write is seen")

    def final(self) -> list[str]:
        """Find rows that were refused and are still there."""
        found: list[str] = []
        refused = frozenset[str]().union(*(one.inserts for one in self.refused.values()))
        for site in self.sites.values():
            for relation in site.store.relations.values():
                rows = relation.rows.items()
                if any(dot.incarnation in refused and not self.kind.is_deletion(row) for dot, row in rows):
                    found.append("a refused row")
        if self.star and self.both and isinstance(self.kind, Set) and not self.forgets:
            found += self.accepted_lengths(refused)
        a, *others = self.sites.values()
        found += ["diverged" for b in others if a.store.relations["r"].rows != b.store.relations["r"].rows]
        return found

    def accepted_lengths(self, refused: frozenset[str]) -> list[str]:
        """A tuple is there if its greatest causal length is odd, of those that were accepted."""
        site = self.sites[0]
        for name, relation in site.store.relations.items():
            lengths: dict[object, int] = {}
            for place in site.seen.get(name, NOTHING):
                event = self.history.events[place]
                row, dot = event.written.row, event.written.dot
                if (
                    event.statement
                    and row
                    and dot
                    and dot.incarnation not in refused
                    and isinstance(row.value, int)
                ):
                    lengths[row.key] = max(lengths.get(row.key, 0), row.value)
            if set(relation.shown()) != {key for key, length in lengths.items() if length % 2}:
                return ["not what was accepted"]
        return []


def publishes(world: World, i: int) -> None:
    """Let an owner publish a new state."""
    if isinstance(world, Publications) and i in world.owners:
        world.publish(i, world.state(world.owners[i]))


class Publications(World):
    """One authority publishes the results of a view, or owners their aggregates; they are put back, too."""

    kinds = (Published(),)
    relations = ("p",)
    count_of_owners = 1

    def __init__(self, seed: int) -> None:
        """Let the first sites be owners."""
        self.owners: dict[int, str] = {}
        self.states: dict[str, list[State]] = {}
        super().__init__(seed)
        for i in list(self.sites)[: self.random.choice([1, 2])]:
            self.owners[i] = f"owner {i}"
            self.states[self.owners[i]] = [{}]
            self.publish(i, {})

    def actions(self) -> Actions:
        """Publish instead of writing rows."""
        gone = {writing.writes, meetings.copies}
        return {
            **{a: often for a, often in PLAIN.items() if a not in gone},
            publishes: 50,
            pages: 15,
            meetings.backs_up: 8,
            meetings.restores: 8,
            meetings.meets: 20,
        }

    def state(self, owner: str) -> State:
        """Return the owner's last state with some items changed, or nothing."""
        if self.random.random() < 0.2:
            return {}
        kept = {item: weight for item, weight in self.states[owner][-1].items() if self.random.random() < 0.8}
        return {**kept, self.random.choice("abc"): self.random.randrange(1000)}

    def publish(self, i: int, state: State) -> None:
        """Publish a state."""
        site, owner = self.sites[i], self.owners[i]
        self.states[owner].append(state)
        writing.wrote(self, i, *published(site.store, "p", owner, state))
        self.counted("published")

    def check(self, site: Site) -> list[str]:
        """Find a state that its owner never had."""
        shown = shown_states(site)
        mixed = [owner for owner, states in self.states.items() if shown.get(owner, {}) not in states]
        return super().check(site) + ["a mixture of states" for _ in mixed]

    def settle(self) -> None:
        """Let owners publish again when all have met: one that was put back learns of its other epochs."""
        super().settle()
        for i in self.owners:
            if i in self.sites:
                self.publish(i, self.state(self.owners[i]))
        super().settle()
        for i, owner in self.owners.items():
            for site in self.sites.values():
                if i in self.sites and shown_states(site).get(owner, {}) != self.states[owner][-1]:
                    self.wrong.append("not the last state")


def shown_states(site: Site) -> dict[str, dict[object, object]]:
    """Return what a site shows of each owner that shows something."""
    found: dict[str, dict[object, object]] = {}
    for owner, item, weight in cast("list[tuple[str, object, object]]", site.store.relations["p"].shown()):
        found.setdefault(owner, {})[item] = weight
    return found
