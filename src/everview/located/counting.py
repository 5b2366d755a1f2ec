"""Counting mode: one place of a located program, without input or output (PSN, Algorithm 1 and Figure 2).

An update inserts or deletes one derivation: a fact, the set of all facts it was made from, and the set of
those among them that go round in a circle. The place picks an update, fires the delta rules over what it
held before and after, and commits; what follows is for other places, or for itself. A deletion waits until
what it deletes is there. Whoever carries updates must deliver each of them once; a base fact is deleted only
if it is there, and inserted only if it is not. `tests/located/model/counting.py` is the specification.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product

from everview.errors import LimitError
from everview.located.facts import Fact
from everview.located.rules import Firing, Rules

__all__ = ["LONGEST_SUPPORT", "MOST_DERIVATIONS", "MOST_PICKS", "CountingPlace", "Derived", "Moves", "Update"]

LONGEST_SUPPORT = 500
"""How many facts a derivation may be made from before it is too much to send them about."""

MOST_DERIVATIONS = 10_000
"""How many derivations of one fact are kept."""

MOST_PICKS = 200_000
"""How many updates are picked at once: where links go round in many circles there is no end in sight."""

Set = frozenset[Fact]
NONE: Set = frozenset()


@dataclass(frozen=True, slots=True)
class Derived:
    """One derivation of a fact: its support, and what of that goes round in a circle."""

    fact: Fact
    support: Set = NONE
    circles: Set = NONE


@dataclass(frozen=True, slots=True)
class Update:
    """Insert (+1) or delete (−1) a derivation."""

    sign: int
    derived: Derived

    def picked(self) -> Update:
        """As the place sees it that picks it: a fact in its own support goes round in a circle."""
        found = self.derived
        if found.fact not in found.support:
            return self
        return Update(self.sign, Derived(found.fact, found.support, found.circles | {found.fact}))


@dataclass(slots=True)
class Moves:
    """What picking has done: facts that appeared (+1) or went (−1), updates for others, counts."""

    changes: dict[Fact, int] = field(default_factory=dict)
    send: dict[str, list[Update]] = field(default_factory=dict)
    counts: dict[Derived, int] = field(default_factory=dict)
    done: list[Update] = field(default_factory=list)
    """The updates that were picked, of those that were offered."""


class CountingPlace:
    """The derivations at one place, and how often each is there."""

    def __init__(
        self,
        place: str,
        rules: Rules,
        held: Mapping[Derived, int] | None = None,
        *,
        longest: int = LONGEST_SUPPORT,
        most: int = MOST_DERIVATIONS,
        picks: int = MOST_PICKS,
    ) -> None:
        self.place = place
        self._rules, self._longest, self._most, self._picks = rules, longest, most, picks
        self._facts = rules.facts()
        self._held: dict[Fact, Counter[tuple[Set, Set]]] = {}
        self._waiting: deque[Update] = deque()
        self._before: dict[Fact, bool] = {}
        for derived, count in (held or {}).items():
            self._count(derived, count)
        self._before = {}

    def drain(self) -> list[Update]:
        """Return one's own updates that cannot be picked yet, for them to be offered again."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def rows(self, relation: str) -> set[tuple[object, ...]]:
        """The rows of a relation that are here: a set, for counts in a circle mean nothing."""
        return {row for name, row in self._held if name == relation}

    def write(self, fact: Fact, *, present: bool) -> bool:
        """Insert or delete a base fact; return whether that is news: it is guarded here."""
        pending = sum(update.sign for update in self._waiting if update.derived == Derived(fact))
        there = self._held.get(fact, Counter())[NONE, NONE] + pending > 0
        if there == present:
            return False
        self._waiting.append(Update(1 if present else -1, Derived(fact)))
        return True

    def run(self, arrived: Iterable[Update] = ()) -> Moves:
        """Pick what can be picked, of what has arrived and of one's own, until nothing can."""
        moves = Moves()
        offered = deque(arrived)
        again, picked = True, 0
        while again:
            again = False
            for queue in (self._waiting, offered):
                for _ in range(len(queue)):
                    update = queue.popleft()
                    if not self._may_pick(update):
                        queue.append(update)
                        continue
                    again, picked = True, picked + 1
                    if picked > self._picks:
                        what = f"{picked} updates at once"
                        raise self._too_much(update.derived.fact, what, self._picks)
                    if queue is offered:
                        moves.done.append(update)
                    self._pick(update.picked(), moves)
        for fact, was in self._before.items():
            if (fact in self._held) != was:
                moves.changes[fact] = -1 if was else 1
        self._before = {}
        return moves

    # Pick, fire, commit.

    def _may_pick(self, update: Update) -> bool:
        found = update.picked().derived
        return update.sign > 0 or self._held.get(found.fact, Counter())[found.support, found.circles] > 0

    def _pick(self, update: Update, moves: Moves) -> None:
        derived, sign = update.derived, update.sign
        annotation = (derived.support, derived.circles)
        old = Counter(self._held.get(derived.fact, Counter()))
        if sign > 0:
            self._count(derived, 1)  # so that the fact is found at the other positions, too
            new = self._held[derived.fact]
        else:
            new = old.copy()
            new[annotation] -= 1
        for position, firing in list(self._rules.fire(derived.fact, self._facts)):
            self._fire(sign, firing, position, derived, old, new, moves)
        if sign < 0:
            self._count(derived, -1)
        moves.counts[derived] = self._held.get(derived.fact, Counter())[annotation]

    def _fire(
        self,
        sign: int,
        firing: Firing,
        driver: int,
        derived: Derived,
        old: Counter[tuple[Set, Set]],
        new: Counter[tuple[Set, Set]],
        moves: Moves,
    ) -> None:
        options: list[list[tuple[Fact, Set, Set, int]]] = []
        for position, fact in enumerate(firing.body):
            if position == driver:
                options.append([(fact, derived.support, derived.circles, 1)])
                continue
            counts = self._held[fact]
            if fact == derived.fact:
                counts = new if position < driver else old
            options.append([(fact, s, h, n) for (s, h), n in counts.items() if n > 0])
        for chosen in product(*options):
            times = 1
            support: set[Fact] = set()
            circles: set[Fact] = set()
            for fact, s, h, n in chosen:
                times *= n
                support |= s
                support.add(fact)
                circles |= h
            if firing.head in circles:
                continue
            if len(support) > self._longest:
                raise self._too_much(
                    firing.head, f"a derivation of {len(support)} facts", self._longest, firing
                )
            made = Update(sign, Derived(firing.head, frozenset(support), frozenset(circles)))
            if firing.place == self.place:
                self._waiting.extend([made] * times)
            else:
                moves.send.setdefault(firing.place, []).extend([made] * times)

    def _count(self, derived: Derived, change: int) -> None:
        fact, annotation = derived.fact, (derived.support, derived.circles)
        counts = self._held.get(fact)
        if counts is None:
            self._before.setdefault(fact, False)
            counts = self._held[fact] = Counter()
            self._facts.add(*fact)
        counts[annotation] += change
        if not counts[annotation]:
            del counts[annotation]
        if not counts:
            self._before.setdefault(fact, True)
            del self._held[fact]
            self._facts.drop(*fact)
        elif len(counts) > self._most:
            raise self._too_much(fact, f"more than {self._most} derivations", self._most)

    def _too_much(self, fact: Fact, what: str, limit: int, firing: Firing | None = None) -> LimitError:
        name, row = fact
        rules = firing.rule.origin if firing is not None else " ".join(self._rules.heads(name))
        return LimitError(
            f"{name}{row} at {self.place} has {what} by {rules} "
            "Host the relations that it reads at one site, where no derivations are kept, or raise the limit",
            limit=limit,
        )
