"""Published views as a program: states of one authority in a row, carried by anybody, in any order.

A state is named by (epoch, mark): what the authority showed after its commit `mark`, in one of its lives. A
site has one state at a time, whole, with the mark at which each row last changed; a row that has gone stays,
with multiplicity 0, until it is forgotten, and `floor` is the greatest mark of a row that was. Joining two
states is taking the later one. What travels is all that changed after the reader's own mark, if the sender
has forgotten nothing since; otherwise the whole, which takes the place of what the reader had.
"""

import random
from copy import deepcopy
from dataclasses import dataclass, field

SHORTCUTS = {
    "no floor": "rows that have gone are forgotten, and readers that have not heard of it read on",
    "merge wholes": "a whole is joined row by row with what the reader had (no base marker)",
    "no gap check": "what changed after a mark is taken by a reader that is not there yet",
    "older counts": "a state is taken though the reader's is later",
    "epoch stays": "an authority that was put back from a backup goes on in its old epoch",
    "even epochs": "there is no chance in the number of an epoch",
    "deaf": "an authority that hears of a later state of its own goes on as it was",
    "pages at once": "each page is applied as it comes",
    "torn pages": "pages go on though the sender has forgotten rows, or has another epoch, since",
}

ROWS = "abc"


class WrongError(AssertionError):
    """A site shows what the authority never showed, or not what it shows in the end."""


@dataclass
class State:
    """One state: row → (multiplicity, mark of its last change)."""

    epoch: float = 0
    mark: int = 0
    floor: int = 0
    rows: dict = field(default_factory=dict)

    @property
    def at(self):
        return self.epoch, self.mark

    def shown(self):
        return {row: count for row, (count, _) in self.rows.items() if count}

    def take(self, page, staged, shortcuts):
        """Apply what a sender has told, from the first page to this one."""
        stale = (page.epoch, page.mark) <= self.at and "older counts" not in shortcuts
        gap = page.start is not None and (page.epoch != self.epoch or page.start > self.mark)
        if stale or (gap and "no gap check" not in shortcuts):
            return
        if page.start is None:
            if "merge wholes" not in shortcuts:
                self.rows = {}
            self.floor = page.floor
        self.epoch, self.mark = page.epoch, page.mark
        self.rows |= staged

    def forget(self, upto, shortcuts):
        """Forget rows that have gone by a mark."""
        gone = [row for row, (count, mark) in self.rows.items() if not count and mark <= upto]
        for row in gone:
            del self.rows[row]
        if gone and "no floor" not in shortcuts:
            self.floor = max(self.floor, upto)


@dataclass
class Page:
    """Some of what changed after `start`, of all if that is None; `begins`: what came before is void."""

    epoch: float
    start: int | None
    mark: int
    floor: int
    begins: bool
    rows: dict
    place: tuple
    done: bool


def next_page(state, reader_at, place, limit, shortcuts):
    """What a sender answers a reader that is at a state, and has had pages up to a place; None if nothing."""
    epoch, mark = reader_at
    if place is not None:
        start, reached, of, floor = place
        broken = of != state.epoch or state.floor > max(reached[0], floor)
        if broken and "torn pages" not in shortcuts:
            place = None
    begins = place is None
    if begins:
        if state.at <= reader_at:
            return None
        start = mark if state.epoch == epoch and (state.floor <= mark or "no floor" in shortcuts) else None
        reached, floor = (-1 if start is None else start, "~"), state.floor
    left = sorted((m, row) for row, (_, m) in state.rows.items() if (m, row) > reached)
    rows = {row: state.rows[row] for _, row in left[:limit]}
    done = len(left) <= limit
    reached = (state.mark, "~") if done else left[limit - 1]
    return Page(
        state.epoch,
        start,
        state.mark,
        state.floor,
        begins,
        rows,
        (start, reached, state.epoch, floor),
        done,
    )


class World:
    """An authority, who is site 0, and others; everything random from one seed."""

    def __init__(self, seed, shortcuts=frozenset()):
        self.rng = random.Random(f"published {seed}")
        self.shortcuts = shortcuts
        self.clock = 100
        self.sites = [State() for _ in range(self.rng.choice([2, 3, 4]))]
        self.backups = {}
        self.cuts = {}
        """(reader, sender) → the reader's state when it asked, the place reached, and what is staged."""
        self.late = []
        """Whole cuts that are still on their way: reader, last page, all its rows."""
        self.truth = {}
        self.history = {}
        self.limit = self.rng.choice([1, 2, 100])
        self.renew()
        self.check()

    @property
    def authority(self):
        return self.sites[0]

    def renew(self, above=0):
        """A new life of the authority: everything counts anew.

        Its number is a reading of the clock and some chance. Clocks go back: two lives from one backup would
        else have the same number.
        """
        state, chance = self.authority, 1 if "even epochs" in self.shortcuts else self.rng.random()
        state.epoch, state.floor = max(self.clock, above) + chance, state.mark
        self.record()

    def record(self):
        self.history[self.authority.at] = dict(self.truth)

    def commit(self):
        state, rng = self.authority, self.rng
        state.mark += 1
        for row in rng.sample(ROWS, rng.choice([1, 1, 2])):
            self.truth[row] = rng.choice([0, 0, 1, 2])
            state.rows[row] = (self.truth[row], state.mark)
        self.truth = {row: count for row, count in self.truth.items() if count}
        self.record()

    def hear(self, at):
        """The authority hears of a state that counts as its own, and is later than the one it has."""
        if at > self.authority.at and "deaf" not in self.shortcuts:
            self.renew(above=at[0])

    def exchange(self, reader, sender):
        """One page; several in turn make a cut, and much may happen between them."""
        ours, theirs = self.sites[reader], self.sites[sender]
        if sender == 0:
            self.hear(ours.at)
        if reader == 0:
            self.hear(theirs.at)
            return
        at, place, staged = self.cuts.pop((reader, sender), (ours.at, None, {}))
        if at > ours.at:  # it was put back: what was staged is gone with the rest
            at, place, staged = ours.at, None, {}
        page = next_page(theirs, at, place, self.limit, self.shortcuts)
        if page is None:
            return
        staged = {} if page.begins else staged
        staged = staged | page.rows
        if page.done:
            self.late.append((reader, deepcopy(page), dict(staged)))
            if self.rng.random() < 0.8:
                self.deliver(len(self.late) - 1)
        elif "pages at once" in self.shortcuts:
            ours.take(page, staged, self.shortcuts)
        if not page.done:
            self.cuts[reader, sender] = (at, page.place, staged)

    def deliver(self, number):
        reader, page, staged = self.late[number]
        if self.rng.random() < 0.6:
            self.late.pop(number)
        self.sites[reader].take(page, staged, self.shortcuts)

    def backup(self):
        number = self.rng.randrange(len(self.sites))
        self.backups[number] = (deepcopy(self.sites[number]), dict(self.truth))

    def restore(self):
        if not self.backups:
            return
        number = self.rng.choice(sorted(self.backups))
        state, truth = self.backups[number]
        self.sites[number] = deepcopy(state)
        self.cuts = {pair: cut for pair, cut in self.cuts.items() if number not in pair}
        if number:
            return
        self.truth = dict(truth)
        self.clock += self.rng.choice([0, 0, 1, -50])  # a clock may have gone back, too
        if "epoch stays" not in self.shortcuts:
            self.renew(above=self.authority.epoch)
        if self.clock <= max(epoch for epoch, _ in self.history):  # else nobody need tell it
            for site in self.sites[1:]:
                self.hear(site.at)

    def forget(self):
        state = self.rng.choice(self.sites)
        state.forget(self.rng.randint(state.floor, max(state.floor, state.mark)), self.shortcuts)

    def check(self):
        for number, site in enumerate(self.sites):
            if site.at != (0, 0) and site.shown() != self.history.get(site.at):
                raise WrongError(f"site {number} shows {site.shown()} at {site.at}")

    def run(self, steps=60):
        rng = self.rng
        for _ in range(steps):
            self.clock += 1
            what = rng.choices(
                ["commit", "exchange", "deliver", "backup", "restore", "forget"], [10, 20, 4, 2, 2, 3]
            )[0]
            if what == "exchange":
                self.exchange(*rng.sample(range(len(self.sites)), 2))
            elif what == "deliver":
                if self.late:
                    self.deliver(rng.randrange(len(self.late)))
            else:
                getattr(self, what)()
            self.check()
        for _ in range(40):
            for reader in range(len(self.sites)):
                for sender in range(len(self.sites)):
                    if reader != sender:
                        self.exchange(reader, sender)
                        self.check()
            while self.late:
                self.deliver(len(self.late) - 1)
                self.check()
        for number, site in enumerate(self.sites):
            if site.at != self.authority.at or site.shown() != self.truth:
                raise WrongError(f"in the end site {number} shows {site.shown()}, not {self.truth}")


def run_published(seed, shortcuts=frozenset()):
    """One random run; WrongError when something is wrong."""
    World(seed, frozenset(shortcuts)).run()
