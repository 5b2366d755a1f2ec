"""Sites that run different versions of a program, write, meet, forget, and go over to later versions.

Every row of a history is inserted once, so what must be there in the end is known without any lattice: what
was inserted, less what somebody saw and deleted; of a key, the last write.
"""

import itertools
import random
from dataclasses import dataclass, field

from tests.evolution.programs import draft, evolved
from tests.site.checks import assert_fresh

import everview as ev


def meet(site, peer):
    """Sync; one that has to wait for another to be listed may be told to try again."""
    try:
        site.sync(peer)
    except ev.SyncError as error:
        if not error.retry:
            raise


@dataclass
class Member:
    path: object
    name: str
    version: int
    hosts: frozenset | None
    site: ev.Site = None


@dataclass
class World:
    rng: random.Random
    folder: object
    drafts: list
    programs: list
    members: list = field(default_factory=list)
    rows: dict = field(default_factory=dict)
    """(relation, n) → the last row written, or None."""
    written: int = 0
    counts: dict = field(
        default_factory=lambda: dict.fromkeys(("writes", "deletes", "syncs", "mixed", "steps"), 0)
    )

    # What happens.

    def write(self):
        member = self.rng.choice([m for m in self.members if m.hosts is None])
        draft_ = self.drafts[member.version]
        table = self.rng.choice(draft_.tables)
        rows = []
        for _ in range(self.rng.randint(1, 3)):
            self.written += 1
            n = self.written
            if table.kind == "keyed" and self.rng.random() < 0.5:
                n = self.rng.randrange(5)
            rows.append(table.row(self.rng, n))
        rows = list({row[0]: row for row in rows}.values())
        member.site.insert(table.name, rows)
        for row in rows:
            self.rows[table.name, row[0]] = row
        self.counts["writes"] += 1

    def delete(self):
        member = self.rng.choice([m for m in self.members if m.hosts is None])
        table = self.rng.choice(self.drafts[member.version].tables)
        there = member.site.rows(table.name)
        if there:
            row = self.rng.choice(there)
            member.site.delete(table.name, [row])
            self.rows[table.name, row[0]] = None
            self.counts["deletes"] += 1

    def sync(self):
        one, other = self.rng.sample(self.members, 2)
        if self.rng.random() < 0.2:
            for member in (one, other, one):
                meet(member.site, self.folder / "stick")
        else:
            meet(one.site, other.site)
        self.counts["syncs"] += 1
        self.counts["mixed"] += one.version != other.version

    def step(self):
        behind = [m for m in self.members if m.version + 1 < len(self.programs)]
        if behind:
            self.migrate(self.rng.choice(behind))

    def migrate(self, member):
        member.version += 1
        member.site.close()
        ev.Site.migrate(member.path, self.programs[member.version])
        self.counts["steps"] += 1
        member.site = ev.Site.open(member.path, self.programs[member.version])
        if member.hosts is None:
            assert_fresh(member.site)

    # How it ends.

    def heal(self):
        for member in self.members:
            while member.version + 1 < len(self.programs):
                self.migrate(member)
        for _ in range(len(self.members) + 1):
            self.meet_all()

    def meet_all(self):
        for one, other in itertools.permutations(self.members, 2):
            meet(one.site, other.site)

    def check(self):
        last = self.drafts[-1]
        full = [m for m in self.members if m.hosts is None]
        for member in full:
            for table in last.tables:
                expected = sorted(
                    (row + (None,) * (len(table.columns) - len(row)))[0]
                    for (name, _), row in self.rows.items()
                    if name == table.name and row is not None
                )
                assert sorted(row[0] for row in member.site.rows(table.name)) == expected, (
                    member.name,
                    table.name,
                )
                rows = {row[0]: row for row in member.site.rows(table.name)}
                for (name, n), row in self.rows.items():
                    if name == table.name and row is not None:
                        assert rows[n] == row + (None,) * (len(table.columns) - len(row)), (member.name, name)
            assert_fresh(member.site)
        for member in self.members:
            if member.hosts is not None:
                for view in sorted(member.hosts & set(last.views)):
                    assert member.site.rows(view) == full[0].site.rows(view), (member.name, view)

    def close(self):
        for member in self.members:
            if member.site is not None:
                member.site.close()


def world(seed, folder, versions=3, sites=4):
    """A world at its beginning."""
    rng = random.Random(seed)
    drafts = [draft(rng)]
    while len(drafts) < versions:
        drafts.append(evolved(rng, drafts[-1]))
    found = World(rng, folder, drafts, [made.program(rng) for made in drafts])
    for number in range(sites):
        version = rng.choice([0, 0, 0, 1]) if versions > 1 else 0
        hosts = None
        if number >= 2 and rng.random() < 0.4:  # views alone: they are fed by others
            names = sorted(found.drafts[version].views)
            hosts = frozenset({"v0", *rng.sample(names, rng.randint(0, len(names)))})
        member = Member(folder / f"s{number}.db", f"s{number}", version, hosts)
        member.site = ev.Site.open(member.path, found.programs[version], name=member.name, hosts=hosts)
        found.members.append(member)
    return found


HAPPENINGS = ("write",) * 6 + ("delete",) * 3 + ("sync",) * 8 + ("step",) * 2


def run(seed, folder, happenings=40):
    """One history, from its beginning to where all agree; return what happened."""
    found = world(seed, folder)
    try:
        for _ in range(happenings):
            getattr(found, found.rng.choice(HAPPENINGS))()
        found.heal()
        found.check()
        found.meet_all()
        found.check()
        return found.counts
    finally:
        found.close()
