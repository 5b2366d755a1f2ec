"""What a link that fails or returns makes sites send: located rules against delete-and-rederive.

Both run the same localised rules over the same changes, in rounds: in each, a place sends at most one message
to another, with all it has for it. Messages are MessagePack; ids are listed once a message, as on the wire.

Delete-and-rederive is as sparing as it can be made: a place remembers who has told it of a fact, so that
nobody need be asked which facts can be derived again; what it costs to agree that all deletions are over,
before anything is derived again, is not counted. It keeps no proofs, so links that nobody has seen before
cost it far less; that is the price of what follows, and shown beside it.

`figures` is part (c) of the benchmark `recursion`; `python -m benchmarks.located_bytes` prints it alone.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from everview.language.datalog.localising import localise
from everview.language.datalog.parser import parse
from everview.located.facts import Fact
from everview.located.items import Derivation, Item, Length
from everview.located.provenance import ProvenancePlace
from everview.located.rules import Rules

__all__ = ["Cost", "Measured", "figures", "measure"]

REACH = """
.decl link(@s: symbol, d: symbol)
.decl reach(@s: symbol, d: symbol)
reach(@s, d) :- link(@s, d).
reach(@s, d) :- link(@s, z), reach(@z, d).
"""
PATHS = """
.decl link(@s: symbol, d: symbol)
.decl path(@s: symbol, d: symbol, vector: symbol, hops: number)
path(@s, d, cat(s, " ", d), 1) :- link(@s, d).
path(@s, d, cat(s, " ", v), n + 1) :-
    link(@s, z), path(@z, d, v, n), strpos(v, s) = 0, n < 7, strlen(v) < 1000.
"""
PROGRAMS = {"reachability": REACH, "path vectors": PATHS}

Link = tuple[str, str]

_NETWORKS = 5

_encode = msgspec.msgpack.Encoder().encode


@dataclass
class Cost:
    """Messages, and their bytes."""

    messages: int = 0
    size: int = 0

    def count(self, message: bytes) -> None:
        """Add a message."""
        self.messages += 1
        self.size += len(message)


def identify(fact: Fact) -> bytes:
    """An id as long as those of tuples; only its length matters here."""
    return random.Random(repr(fact)).randbytes(16)


class ByProvenance:
    """Places in provenance mode."""

    def __init__(self, rules: Rules, names: Iterable[str]) -> None:
        self.places = {name: ProvenancePlace(name, rules, identify) for name in names}

    def turn(self, links: Iterable[Fact], *, up: bool) -> Cost:
        """Insert or delete base facts, and let the news go round."""
        cost = Cost()
        for fact in links:
            self.places[fact[1][0]].write(fact, present=up)
        under_way = self._sent(cost)
        while under_way:
            for to, items in under_way:
                self.places[to].hear(to, items)
            under_way = self._sent(cost)
        return cost

    def _sent(self, cost: Cost) -> list[tuple[str, list[Item]]]:
        found = []
        for place in self.places.values():
            for to, items in place.take().add.items():
                cost.count(self._message(items))
                found.append((to, items))
        return found

    def _message(self, items: Iterable[Item]) -> bytes:
        ids: dict[bytes, int] = {}
        lengths, derivations = [], []
        for item in items:
            match item:
                case Length(place, id_, length):
                    lengths.append((place, ids.setdefault(id_, len(ids)), length))
                case Derivation(fact, named):
                    derivations.append((*fact, [ids.setdefault(id_, len(ids)) for id_ in named]))
        return _encode((list(ids), lengths, derivations))

    def rows(self, relation: str) -> set[tuple[object, ...]]:
        """What all places hold of a relation."""
        return set().union(*(place.rows(relation) for place in self.places.values()))


@dataclass
class _Place:
    """One place under delete-and-rederive: facts, and for each who says so; its own rules count as itself."""

    name: str
    rules: Rules
    told: dict[Fact, set[str]] = field(default_factory=dict)
    gone: set[Fact] = field(default_factory=set)
    """Deleted in this change, perhaps too eagerly."""
    withdrawn: dict[Fact, str] = field(default_factory=dict)
    """Heads that it has deleted elsewhere in this change, and where."""

    def __post_init__(self) -> None:
        self.facts = self.rules.facts()

    def delete(self, fact: Fact, sayer: str) -> list[tuple[str, Fact]]:
        """Take a fact out, and everything that was made with it; return the heads, with their places."""
        self.told.get(fact, set()).discard(sayer)
        if fact in self.gone or fact not in self.told:
            return []
        heads = {(firing.place, firing.head) for _, firing in self.rules.fire(fact, self.facts)}
        self.gone.add(fact)
        return sorted(heads)

    def settle(self) -> None:
        """All deletions are known: take what is gone out of what rules read."""
        for fact in self.gone:
            self.facts.drop(*fact)

    def rederive(self) -> list[tuple[str, Fact]]:
        """What can be derived again without what is gone: facts here that others still say, and heads."""
        found = [(self.name, fact) for fact in self.gone if self.told[fact]]
        for rule in self.rules.all:
            for row in list(self.facts.rows(rule.reads[0])):
                found += [
                    (firing.place, firing.head)
                    for firing in rule.fire(0, row, self.facts)
                    if firing.head in self.withdrawn or firing.head in self.gone
                ]
        self.withdrawn, self.gone = {}, set()
        return sorted(set(found))

    def insert(self, fact: Fact, sayer: str) -> list[tuple[str, Fact]]:
        """Hold a fact; return the heads that follow, if it is new."""
        self.told.setdefault(fact, set()).add(sayer)
        if fact[1] in set(self.facts.rows(fact[0])):
            return []
        self.facts.add(*fact)
        return sorted({(firing.place, firing.head) for _, firing in self.rules.fire(fact, self.facts)})


class ByRederiving:
    """Places that delete whatever may have gone, and then derive again what has not."""

    def __init__(self, rules: Rules, names: Iterable[str]) -> None:
        self.places = {name: _Place(name, rules) for name in names}
        self._has: set[tuple[str, str, Fact]] = set()
        """(Sender, receiver, fact) that was told and not withdrawn."""

    def turn(self, links: Iterable[Fact], *, up: bool) -> Cost:
        """Insert or delete base facts, and let the news go round."""
        cost = Cost()
        first = [("", fact[1][0], fact) for fact in links]
        if up:
            self._spread(first, cost)
            return cost
        self._withdraw(first, cost)
        for place in self.places.values():
            place.settle()
        again = [(name, to, fact) for name, place in self.places.items() for to, fact in place.rederive()]
        self._spread(self._sent(again, cost), cost)
        return cost

    def _withdraw(self, news: list[tuple[str, str, Fact]], cost: Cost) -> None:
        while news:
            found = []
            for sender, at, fact in news:
                for to, head in self.places[at].delete(fact, sender):
                    if to == at or (at, to, head) in self._has:
                        self._has.discard((at, to, head))
                        self.places[at].withdrawn[head] = to
                        found.append((at, to, head))
            self._count(found, cost, sign=-1)
            news = found

    def _spread(self, news: list[tuple[str, str, Fact]], cost: Cost) -> None:
        while news:
            made = [(at, to, head) for s, at, fact in news for to, head in self.places[at].insert(fact, s)]
            news = self._sent(made, cost)

    def _sent(self, made: Iterable[tuple[str, str, Fact]], cost: Cost) -> list[tuple[str, str, Fact]]:
        """Those that the other place has not been told; own ones cost nothing."""
        new = [one for one in dict.fromkeys(made) if one[0] == one[1] or one not in self._has]
        self._has |= {one for one in new if one[0] != one[1]}
        self._count(new, cost, sign=1)
        return new

    def _count(self, news: Iterable[tuple[str, str, Fact]], cost: Cost, *, sign: int) -> None:
        batches: dict[tuple[str, str], list[Fact]] = {}
        for sender, to, fact in news:
            if sender != to:
                batches.setdefault((sender, to), []).append(fact)
        for facts in batches.values():
            cost.count(_encode((sign, facts)))

    def rows(self, relation: str) -> set[tuple[object, ...]]:
        """What all places hold of a relation."""
        return set().union(*(place.facts.rows(relation) for place in self.places.values()))


@dataclass
class Measured:
    """Costs of a program: of all links when they first come, and of each change after that."""

    program: str
    first: dict[str, Cost]
    changes: dict[str, Cost]
    count: int

    def ratio(self, of: Literal["size", "messages"]) -> float:
        """Located over delete-and-rederive, for the changes."""
        ours, theirs = (getattr(self.changes[way], of) for way in ("located", "rederive"))
        return float(ours / max(theirs, 1))

    @property
    def first_ratio(self) -> float:
        """The same of the bytes by which all links came to be known."""
        return self.first["located"].size / max(self.first["rederive"].size, 1)


def measure(program: str, sites: int, chords: int, changes: int, seed: int) -> Measured:
    """Run both on a ring with chords whose links fail and return; what they hold must always be the same."""
    rng = random.Random(seed)
    names = [f"s{number:02}" for number in range(sites)]
    links = [(names[at], names[(at + 1) % sites]) for at in range(sites)]
    far = [(a, b) for at, a in enumerate(names) for b in names[at + 2 :] if (at, b) != (0, names[-1])]
    links += rng.sample(far, chords)
    rules = Rules(localise(parse(PROGRAMS[program])))
    derived = sorted({rule.relation for rule in rules.all})
    runs: dict[str, ByProvenance | ByRederiving] = {
        "located": ByProvenance(rules, names),
        "rederive": ByRederiving(rules, names),
    }
    measured = Measured(program, {name: Cost() for name in runs}, {name: Cost() for name in runs}, 0)
    up = dict.fromkeys(links, False)

    def turn(link: Link, total: dict[str, Cost]) -> None:
        up[link] = not up[link]
        facts: list[Fact] = [("link", link), ("link", link[::-1])]
        for name, run in runs.items():
            cost = run.turn(facts, up=up[link])
            total[name].messages += cost.messages
            total[name].size += cost.size
        for relation in derived:
            if runs["located"].rows(relation) != runs["rederive"].rows(relation):
                raise AssertionError(f"{program}: the two differ in {relation} after {link}")

    for link in links:
        turn(link, measured.first)
    for _ in range(changes):
        down = [link for link in links if not up[link]]
        returns = rng.random() < len(down) / 4
        turn(rng.choice(down if returns else [link for link in links if up[link]]), measured.changes)
    measured.count = changes
    return measured


def figures(*, quick: bool) -> tuple[dict[str, float], list[tuple[str, str]]]:
    """Return figures, and lines for people: medians of networks that differ in their chords and changes.

    `located_bytes_ratio` is that of reachability: bytes per change, located over delete-and-rederive.
    """
    size = {"sites": 10, "chords": 2, "changes": 10} if quick else {"sites": 20, "chords": 5, "changes": 60}
    found: dict[str, float] = {}
    shown = []
    for program, prefix in (("reachability", "located"), ("path vectors", "located_paths")):
        runs = [measure(program, **size, seed=seed) for seed in range(_NETWORKS)]
        found |= {
            f"{prefix}_bytes_ratio": statistics.median(run.ratio("size") for run in runs),
            f"{prefix}_messages_ratio": statistics.median(run.ratio("messages") for run in runs),
            f"{prefix}_first_bytes_ratio": statistics.median(run.first_ratio for run in runs),
        }
        for way in ("located", "rederive"):
            sent = statistics.median(run.changes[way].size / run.count for run in runs)
            messages = statistics.median(run.changes[way].messages / run.count for run in runs)
            first = statistics.median(run.first[way].size for run in runs)
            shown.append((f"{program}, {way}: a change", f"{messages:,.0f} messages, {sent:,.0f} bytes"))
            shown.append((f"{program}, {way}: all links, at first", f"{first:,.0f} bytes"))
    return found, shown


def main() -> None:
    """Print the figures alone, without the rest of the benchmark of recursion."""
    found, shown = figures(quick=False)
    for name, value in (*shown, *((name, f"{figure:.3f}") for name, figure in found.items())):
        print(f"{name:60} {value}")


if __name__ == "__main__":
    main()
