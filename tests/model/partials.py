"""Partial aggregates as a program: what owners' rows come to, carried to sites that hold no rows.

Rows have an owner, which is a name. Those who go by it are its incarnations: one after the other, when a
store was put back from a backup, or several at once. Together they are one owner, and what its rows are is
told by how many commits of each incarnation one has seen: its *standing*. So what they come to, the owner's
partial, is a function of the standing, whoever computes it from rows; and a site has one state of an owner
at a time, whole. Joining two states is taking the later one. Standings are ordered by how many incarnations
they know, then by how many commits, then by name: of two that are comparable the greater one comes later,
and of two that are not, which one cannot join without rows, everybody takes the same. Who has heard of
commits that were lost, when a store was put back before anybody else had read them, may stay with them
until the owner has made as many.

A feeder that has rows sees states that others never see, and skips some that others do. So what changed
after its own commit is good only for a reader that has exactly the state that it had then; they *agree*.
"""

import random
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field

SHORTCUTS = {
    "by incarnation": "what each incarnation of an owner has is one partial, and all of them are added up",
    "owners only": "an owner counts only what its own incarnation has written",
    "entry by entry": "the later of two entries counts, each by itself",
    "cursor alone": "what changed after a commit is taken by whoever had the state of it, or a later one",
    "older counts": "a state is taken though the reader's is later",
    "last commit": "of two states the one with the greatest commit is the later one",
    "join standings": "a reader says that it has whatever it has ever been told of",
    "keep agreeing": "a state that came from elsewhere does not end that a reader agrees with others",
    "merge wholes": "a whole is joined entry by entry with what the reader had",
    "no floor": "entries that have gone are forgotten, and readers that have not heard of it read on",
    "pages at once": "each page is applied as it comes",
    "torn pages": "pages go on though what is told whole, or what is forgotten, has changed since",
}

ROWS = [("g", 0), ("h", 0), ("h", 1)]
"""Group and number."""


class WrongError(AssertionError):
    """A site shows what the rows of an owner never came to, or not what they come to in the end."""


def order(standing):
    """What standings are compared by: greater comes later."""
    return len(standing), sum(standing.values()), sorted(standing.items())


def covers(mine, theirs):
    return all(mine.get(incarnation, 0) >= n for incarnation, n in theirs.items())


def joined(mine, theirs):
    return {i: max(mine.get(i, 0), theirs.get(i, 0)) for i in sorted({*mine, *theirs})}


@dataclass
class Site:
    """A site that holds rows (`vector` says which), or one that is fed and holds states of owners."""

    name: str
    incarnation: str
    has_rows: bool
    vector: dict = field(default_factory=dict)
    standings: dict = field(default_factory=dict)
    head: int = 0
    entries: dict = field(default_factory=dict)
    """(owner, group) → (count, commit here); a count of 0 has gone."""
    marks: dict = field(default_factory=dict)
    """(owner, group) → the standing at which it changed; for a shortcut."""
    floor: int = 0
    cursors: dict = field(default_factory=dict)
    """Feeder → its commit up to which it was read."""
    agrees: set = field(default_factory=set)
    """(Feeder, owner): this site has what the feeder had at the cursor."""

    def of(self, owner):
        return {group: n for (o, group), (n, _) in self.entries.items() if o == owner and n}

    def put(self, owner, entries, standing):
        """Let an owner's entries be these; note the commit at which each changed."""
        for group in {*entries, *self.of(owner)}:
            count = entries.get(group, 0)
            if self.entries.get((owner, group), (0, 0))[0] != count:
                self.entries[owner, group] = count, self.head
                self.marks[owner, group] = standing

    def forget(self, upto, shortcuts):
        gone = [key for key, (n, version) in self.entries.items() if not n and version <= upto]
        for key in gone:
            del self.entries[key]
        if gone and "no floor" not in shortcuts:
            self.floor = max(self.floor, upto)


@dataclass
class Told:
    """What a reader says of itself when it asks a feeder."""

    standings: dict
    agrees: set
    cursor: int


@dataclass
class Page:
    """Entries of some owners; the last page says where the feeder stands. `whole` owners come whole."""

    feeder: str
    since: int
    head: int
    whole: frozenset
    standings: dict
    begins: bool
    entries: dict
    marks: dict
    place: tuple
    done: bool


def wanted(feeder, told, shortcuts):
    """Owners that are told as a whole, and as what has changed since the reader's cursor."""
    whole, changed = set(), set()
    fits = told.cursor > 0 and (told.cursor >= feeder.floor or "no floor" in shortcuts)
    for owner, standing in feeder.standings.items():
        theirs = told.standings.get(owner, {})
        if _is_later(standing, theirs, shortcuts) or ("older counts" in shortcuts and standing != theirs):
            agrees = owner in told.agrees or "cursor alone" in shortcuts
            (changed if fits and agrees else whole).add(owner)
    return frozenset(whole), frozenset(changed)


def _is_later(standing, theirs, shortcuts):
    if "last commit" in shortcuts:
        return max(standing.values(), default=0) > max(theirs.values(), default=0)
    return order(standing) > order(theirs)


def next_page(feeder, told, place, limit, shortcuts):
    """What a feeder answers; None if it has nothing to tell."""
    whole, changed = wanted(feeder, told, shortcuts)
    begins = place is None
    if not begins:
        reached, had, floor = place
        torn = had != whole or feeder.floor > max(reached[0], floor)
        begins = torn and "torn pages" not in shortcuts
    if begins:
        reached, floor = (0 if whole else told.cursor, ""), feeder.floor
    left = sorted(
        (version, key)
        for key, (_, version) in feeder.entries.items()
        if (version, key) > (reached[0], tuple(reached[1]))
        if key[0] in whole or (key[0] in changed and version > told.cursor)
    )
    done = len(left) <= limit
    sent = [key for _, key in left[:limit]]
    return Page(
        feeder.incarnation,
        told.cursor,
        feeder.head,
        whole,
        {owner: dict(standing) for owner, standing in feeder.standings.items()},
        begins,
        {key: feeder.entries[key][0] for key in sent},
        {key: feeder.marks[key] for key in sent},
        ((feeder.head, "~") if done else left[limit - 1], whole, floor),
        done,
    )


class World:
    """Sites with rows, of which two may have the same name, and sites that are fed; all from one seed."""

    def __init__(self, seed, shortcuts=frozenset()):
        self.rng = random.Random(f"partials {seed}")
        self.shortcuts = shortcuts
        self.born = 0
        self.log = {}
        """Incarnation → the (row, length) that each commit wrote; None is a commit of something else."""
        names = self.rng.choice([["o"], ["o", "p"], ["o", "p"], ["o", "o"]])
        self.sites = [Site(name, self.birth(name), has_rows=True) for name in [*names, "relay"]]
        self.sites += [Site(f"v{i}", self.birth(f"v{i}"), has_rows=False) for i in range(2)]
        self.names = {site.incarnation: site.name for site in self.sites}
        self.backups = {}
        self.cuts = {}
        self.late = []
        self.limit = self.rng.choice([1, 2, 100])

    def birth(self, name):
        self.born += 1
        incarnation = f"{self.rng.randrange(10)}{name}{self.born}"
        self.log[incarnation] = []
        return incarnation

    # Rows.

    def rows(self, vector, owner):
        """Row → length, of an owner's rows at a site that has seen these commits."""
        lengths = {}
        for incarnation, n in vector.items():
            for write in self.log[incarnation][:n] if self.names[incarnation] == owner else ():
                if write is not None:
                    lengths[write[0]] = max(lengths.get(write[0], 0), write[1])
        return lengths

    def partial(self, standing, owner):
        """The naive twin: what the owner's rows come to, counted."""
        return dict(Counter(row[0] for row, length in self.rows(standing, owner).items() if length % 2))

    def follow(self, site):
        """A site that holds rows brings what it tells of them up to date, in the same commit."""
        for owner in {self.names[incarnation] for incarnation in site.vector}:
            standing = {i: n for i, n in site.vector.items() if self.names[i] == owner and n}
            if "owners only" in self.shortcuts and owner == site.name:
                mine = {site.incarnation: standing.get(site.incarnation, 0)}
                site.put(owner, self.partial(mine, owner), standing)
            else:
                site.put(owner, self.partial(standing, owner), standing)
            site.standings[owner] = standing

    def commit(self):
        """An owner writes one of its rows, or something else."""
        site = self.rng.choice([site for site in self.sites if site.has_rows and site.name != "relay"])
        log, own = self.log[site.incarnation], site.incarnation
        row = self.rng.choice(ROWS)
        length = self.rows(site.vector, site.name).get(row, 0) + 1
        log.extend([None] * (site.head - len(log)))  # numbers go on after a backup
        log.append((row, length) if self.rng.random() < 0.8 else None)
        site.head += 1
        site.vector[own] = site.head
        self.follow(site)

    def meet(self):
        """A site that holds rows reads another."""
        reader, sender = self.rng.sample([site for site in self.sites if site.has_rows], 2)
        self.read(reader, sender)

    def read(self, reader, sender):
        if not covers(reader.vector, sender.vector):
            reader.head += 1
            reader.vector = joined(reader.vector, sender.vector)
            self.follow(reader)

    # States.

    def exchange(self, reader, feeder):
        """One page; several in turn make a cut, and much may happen between them."""
        if reader.has_rows:
            return
        pair = reader.incarnation, feeder.incarnation
        agrees = {owner for other, owner in reader.agrees if other == feeder.incarnation}
        fresh = Told(deepcopy(reader.standings), agrees, reader.cursors.get(feeder.incarnation, 0))
        told, place, staged = self.cuts.pop(pair, (fresh, None, {}))
        page = next_page(feeder, told, place, self.limit, self.shortcuts)
        staged = ({} if page.begins else staged) | {k: (n, page.marks[k]) for k, n in page.entries.items()}
        if page.done:
            self.late.append((reader.name, page, staged))
            if self.rng.random() < 0.8:
                self.deliver(len(self.late) - 1)
            return
        if "pages at once" in self.shortcuts:
            self.take(reader, page, staged)
        self.cuts[pair] = told, page.place, staged

    def deliver(self, number):
        name, page, staged = self.late[number]
        if self.rng.random() < 0.6:
            self.late.pop(number)
        (reader,) = (site for site in self.sites if site.name == name)
        self.take(reader, page, staged)

    def take(self, reader, page, staged):
        """Apply what a feeder has told, from the first page to this one."""
        if "entry by entry" in self.shortcuts:
            return self.take_entries(reader, page, staged)
        reader.head += 1
        cursor = reader.cursors.get(page.feeder, 0)
        for owner, standing in page.standings.items():
            mine = reader.standings.get(owner, {})
            agrees = (page.feeder, owner) in reader.agrees or "cursor alone" in self.shortcuts
            if _is_later(standing, mine, self.shortcuts) or "older counts" in self.shortcuts:
                if owner not in page.whole and not (agrees and 0 < page.since <= cursor):
                    reader.agrees.discard((page.feeder, owner))
                    continue
                news = {group: n for (o, group), (n, _) in staged.items() if o == owner}
                if owner not in page.whole or "merge wholes" in self.shortcuts:
                    news = reader.of(owner) | news
                reader.put(owner, news, standing)
                mine = joined(standing, mine) if "join standings" in self.shortcuts else standing
                reader.standings[owner] = mine
                if "keep agreeing" not in self.shortcuts:
                    reader.agrees = {(f, o) for f, o in reader.agrees if o != owner}
            if page.head < cursor:
                continue  # what the feeder had at the cursor is not told
            if mine == standing:
                reader.agrees.add((page.feeder, owner))
            elif "keep agreeing" not in self.shortcuts:
                reader.agrees.discard((page.feeder, owner))
        reader.cursors[page.feeder] = max(cursor, page.head)
        return None

    def take_entries(self, reader, page, staged):
        reader.head += 1
        for (owner, group), (n, mark) in staged.items():
            if order(mark) > order(reader.marks.get((owner, group), {})):
                reader.entries[owner, group] = n, reader.head
                reader.marks[owner, group] = mark
        for owner, standing in page.standings.items():
            if order(standing) > order(reader.standings.get(owner, {})):
                reader.standings[owner] = standing
        reader.cursors[page.feeder] = max(reader.cursors.get(page.feeder, 0), page.head)

    # Stores that go back.

    def backup(self):
        number = self.rng.randrange(len(self.sites))
        self.backups[number] = deepcopy(self.sites[number])

    def restore(self):
        """A store is put back, or a copy of it comes to live: it takes a new incarnation."""
        if not self.backups:
            return
        number = self.rng.choice(sorted(self.backups))
        site = deepcopy(self.backups[number])
        site.incarnation = self.birth(site.name)
        self.names[site.incarnation] = site.name
        site.cursors, site.agrees = {}, set()
        self.sites[number] = site
        if site.has_rows:
            site.head += 1
            self.log[site.incarnation].extend([None] * site.head)
            site.vector[site.incarnation] = site.head
            self.follow(site)

    def forget(self):
        site = self.rng.choice(self.sites)
        site.forget(self.rng.randint(site.floor, max(site.floor, site.head)), self.shortcuts)

    # What is wrong.

    def shown(self, site, owner):
        return site.of(owner)

    def check(self):
        """What a site shows of an owner is what its rows came to at the standing that it tells."""
        for site in self.sites:
            for owner, standing in site.standings.items():
                if site.of(owner) != self.partial(standing, owner):
                    raise WrongError(f"{site.name} shows {site.of(owner)} of {owner} at {standing}")

    def run(self, steps=70):
        rng = self.rng
        for _ in range(steps):
            what = rng.choices(
                ["commit", "meet", "exchange", "deliver", "backup", "restore", "forget"],
                [12, 6, 24, 4, 2, 2, 4],
            )[0]
            if what == "exchange":
                self.exchange(*rng.sample(self.sites, 2))
            elif what == "deliver":
                if self.late:
                    self.deliver(rng.randrange(len(self.late)))
            else:
                getattr(self, what)()
            self.check()
        self.settle()

    def settle(self):
        """Everybody who has rows reads everybody who has; then all others are fed."""
        holders = [site for site in self.sites if site.has_rows]
        for _ in range(2):
            for reader in holders:
                for sender in holders:
                    self.read(reader, sender)
        for _ in range(10):
            for reader in self.sites:
                for feeder in self.sites:
                    if reader is not feeder:
                        self.exchange(reader, feeder)
                        self.check()
            while self.late:
                self.deliver(len(self.late) - 1)
                self.check()
        for site in self.sites:
            for owner, standing in holders[0].standings.items():
                truth = self.partial(standing, owner)
                if not covers(standing, site.standings.get(owner, {})):
                    continue  # it alone has heard of commits that were lost when a store was put back
                if self.shown(site, owner) != truth:
                    raise WrongError(f"in the end {site.name} shows {self.shown(site, owner)}, not {truth}")


class Added(World):
    """The shortcut *by incarnation*: a partial is of an incarnation, and the newest of each is added up.

    An incarnation's store has the rows that it had before it was put back: it tells of all that it holds.
    """

    def follow(self, site):
        site.standings[site.name] = dict(site.vector)
        site.put((site.name, site.incarnation), self.partial(site.vector, site.name), dict(site.vector))

    def check(self):
        """Only the end counts."""

    def take(self, reader, page, staged):
        for (who, group), (n, mark) in staged.items():
            if order(mark) > order(reader.marks.get((who, group), {})):
                reader.entries[who, group], reader.marks[who, group] = (n, reader.head), mark

    def exchange(self, reader, feeder):
        if reader.has_rows:
            return
        entries = {key: (n, feeder.marks[key]) for key, (n, _) in feeder.entries.items()}
        self.take(reader, None, deepcopy(entries))

    def shown(self, site, owner):
        if site.has_rows:
            return self.partial(site.vector, owner)
        found = Counter()
        for (who, group), (n, _) in site.entries.items():
            if who[0] == owner and n:
                found[group] += n
        return dict(found)


def run_partials(seed, shortcuts=frozenset()):
    """One random run; WrongError when something is wrong."""
    world = Added if "by incarnation" in shortcuts else World
    world(seed, frozenset(shortcuts)).run()
