"""Random worlds of stores in files that are copied and put back, with an exact oracle.

Every row has an identity of its own. A store's past is what it has inserted and deleted, or heard of; a copy
and a backup have the past of their file. In the end all stores are equal, and hold what is inserted in any
past that is still there, and deleted in none: each row once, also in a bag.
"""

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.engines.sqlite.windows.worlds import World, check_digests, opened_as

from everview import Program
from everview.site import Site

PROGRAM = Program.parse("""
    CREATE TABLE r (id BIGINT NOT NULL);
    CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
    CREATE TABLE g (id BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE TABLE w (id BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW n AS SELECT g.id, count(*) AS n FROM g JOIN r ON g.id = r.id GROUP BY g.id;
""")
RELATIONS = ("r", "k", "g", "w")


@dataclass
class Past:
    """What a store, a copy or a backup has inserted and deleted, or heard of."""

    inserted: set = field(default_factory=set)
    deleted: set = field(default_factory=set)

    def copy(self):
        return Past(set(self.inserted), set(self.deleted))


@dataclass
class Place:
    """A store's file and its past; `readers` have read it since the backup was made."""

    path: Path
    site: Site
    past: Past
    backup: Past | None = None
    kept_as: str = ""
    readers: dict = field(default_factory=dict)
    told: int = 0
    """The last commit that anybody has read since the backup was made."""
    owes: bool = False
    """Whether it went back unnoticed, and has met nobody since."""

    def latest(self):
        """Who has read the last that it has told since its backup."""
        return {other for other, head in self.readers.items() if head == self.told}


class Copies:
    """One run."""

    def __init__(self, folder, seed, *, unnoticed):
        self.random, self.world = random.Random(seed), World(seed)
        self.folder, self.unnoticed = Path(folder), unnoticed
        self.places = {}
        self.ids = 0
        self.restores = self.copied = self.found_out = 0
        for name in "abc":
            self.add(name, Past())

    def add(self, name, past):
        path = self.folder / f"{name}.db"
        self.places[name] = Place(path, self.open(name, path), past)

    def open(self, name, path):
        return opened_as(name, path, program=PROGRAM, world=self.world)

    def close(self):
        for place in self.places.values():
            place.site.close()

    # What happens.

    def write(self, name):
        place = self.places[name]
        for relation in self.random.sample(RELATIONS, 2):
            ids = range(self.ids, self.ids + self.random.choice((1, 1, 3)))
            self.ids = ids.stop
            place.site.insert(relation, [(one, name) if relation == "k" else (one,) for one in ids])
            place.past.inserted |= {(relation, one) for one in ids}

    def delete(self, name):
        place = self.places[name]
        here = sorted(place.past.inserted - place.past.deleted)
        for relation, one in self.random.sample(here, min(2, len(here))):
            assert place.site.delete(relation, [(one,)]) == 1, (name, relation, one)
            place.past.deleted.add((relation, one))

    def talk(self, name):
        others = [other for other in self.places if other != name]
        place = self.places[name]
        if place.owes:  # the first that it meets has read it, or nobody has read what it forgot
            others = [other for other in others if other in place.latest()] or others
        other = self.random.choice(others)
        theirs = self.places[other]
        if theirs.owes and theirs.told and name not in theirs.latest():
            return
        if self.random.random() < 0.5:
            place, theirs, name, other = theirs, place, other, name
        before = [one.site.replica.incarnation for one in (place, theirs)]
        self.world.seconds += 1
        place.site.sync(theirs.site)
        self.found_out += before != [one.site.replica.incarnation for one in (place, theirs)]
        place.owes = theirs.owes = False
        for one in (place, theirs):
            one.past.inserted |= place.past.inserted | theirs.past.inserted
            one.past.deleted |= place.past.deleted | theirs.past.deleted
        place.told = place.readers[other] = place.site.replica.head
        theirs.told = theirs.readers[name] = theirs.site.replica.head
        assert self.shown(place) == self.shown(theirs) == self.expected(place.past), (name, other)

    def reopen(self, name):
        place = self.places[name]
        place.site.close()
        place.site = self.open(name, place.path)

    def copy(self, name):
        """The file is copied while it is open, or by `backup`; both go on. Or a copy is copied."""
        if len(self.places) > 5 or self.places[name].owes:
            return
        place, new = self.places[name], f"{name}{len(self.places)}"
        path = self.folder / f"{new}.db"
        if self.random.random() < 0.5:
            place.site.backup(path)
        else:
            for end in ("", "-wal"):
                if Path(f"{place.path}{end}").exists():
                    shutil.copyfile(f"{place.path}{end}", f"{path}{end}")
        before = place.site.replica.incarnation
        self.add(new, place.past.copy())
        assert self.places[new].site.replica.incarnation != before
        self.copied += 1

    def keep(self, name):
        place = self.places[name]
        if place.owes:
            return
        self.reopen(name)  # nothing was written since: else see `identity`
        place.site.close()
        for end in ("", "-shown"):
            kept = self.folder / f"{name}.kept{end}"
            kept.unlink(missing_ok=True)
            if Path(f"{place.path}{end}").exists():
                shutil.copyfile(f"{place.path}{end}", kept)
        place.site = self.open(name, place.path)
        place.backup, place.readers, place.told = place.past.copy(), {}, 0
        place.kept_as = place.site.replica.incarnation

    def restore(self, name):
        """Put the backup back: by `restore`, as another file, over the old one, or with what lies beside."""
        place = self.places[name]
        if place.backup is None or any(one.owes for one in self.places.values()):
            return
        for one in self.places.values():
            one.readers.pop(name, None)  # it has forgotten that
        is_same = place.site.replica.incarnation == place.kept_as
        place.site.close()
        kept = self.folder / f"{name}.kept"
        how = self.random.choice(("moved", "over", "restore", "unnoticed"))
        if how == "restore":
            shutil.rmtree(self.folder / "aside", ignore_errors=True)
            Site.restore(kept, place.path, replace=True).close()
            Path(f"{place.path}.replaced").unlink()
        elif how == "moved":
            new = self.folder / "new"
            shutil.copyfile(kept, new)
            new.replace(place.path)
        else:
            shutil.copyfile(kept, place.path)
        if how == "unnoticed" and self.unnoticed and is_same and (place.latest() or not place.told):
            beside, side = Path(f"{kept}-shown"), Path(f"{place.path}-shown")
            side.unlink(missing_ok=True)
            if beside.exists():
                shutil.copyfile(beside, side)
            place.owes = True
        place.site = self.open(name, place.path)
        place.past = place.backup.copy()
        self.restores += 1

    def step(self):
        name = self.random.choice(list(self.places))
        chance = self.random.random()
        if chance < 0.3:
            self.write(name)
        elif chance < 0.45:
            self.delete(name)
        elif chance < 0.75:
            self.talk(name)
        elif chance < 0.8:
            self.reopen(name)
        elif chance < 0.85:
            self.copy(name)
        elif chance < 0.92:
            self.keep(name)
        else:
            self.restore(name)

    # The oracle.

    def shown(self, place):
        return {relation: [row[0] for row in place.site.rows(relation)] for relation in RELATIONS}

    def expected(self, past):
        there = past.inserted - past.deleted
        return {relation: sorted(one for of, one in there if of == relation) for relation in RELATIONS}

    def heal(self):
        for _ in range(4):
            for name in list(self.places):
                for _ in range(2):
                    self.talk(name)
        for _ in range(3):
            first = self.places["a"]
            for place in self.places.values():
                if place is not first:
                    place.site.sync(first.site)
        past = Past()
        for place in self.places.values():
            past.inserted |= place.past.inserted
            past.deleted |= place.past.deleted
        for name, place in self.places.items():
            assert self.shown(place) == self.expected(past), name
            assert place.site.rows("n") == self.places["a"].site.rows("n")
        check_digests(*(place.site for place in self.places.values()))


def run_copies(folder, seed, steps=120, *, unnoticed=True):
    """One run; an AssertionError if something was lost, came back, or doubled."""
    run = Copies(folder, seed, unnoticed=unnoticed)
    try:
        for _ in range(steps):
            run.step()
        run.heal()
    finally:
        run.close()
    return run
