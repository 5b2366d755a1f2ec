"""The cores themselves under every schedule of the worked examples of the model, memoised."""

import copy
import re

import pytest
from tests.located.model.worlds import EXAMPLES
from tests.located.test_cores import identify

from everview.language.datalog.localising import localise
from everview.language.datalog.parser import parse
from everview.located.counting import CountingPlace
from everview.located.provenance import ProvenancePlace
from everview.located.rules import Rules

CASES = [(kind, name) for kind in ("Provenance", "Counting") for name in sorted(EXAMPLES)]
CASES.remove(("Provenance", "hops"))  # in which each row may travel alone: there are too many orders


def compiled(example):
    """The model's rules as a program: its places are symbols."""
    text = re.sub(r"@(\d+)", r'@"\1"', example.text)
    relations = dict(re.findall(r"(\w+)\(([^)]*)\)", text))
    declared = "".join(
        f".decl {name}(@c0: symbol{''.join(f', c{at}: symbol' for at in range(1, terms.count(',') + 1))})\n"
        for name, terms in relations.items()
    )
    return Rules(localise(parse(declared + text)))


class World:
    """Places, what is under way to each, and what is still to be written."""

    def __init__(self, places):
        self.places = places
        self.boxes = dict.fromkeys(places, ())
        self.writes = ()

    def copied(self, at, rules):
        made = object.__new__(type(self))
        made.places, made.boxes, made.writes = dict(self.places), dict(self.boxes), self.writes
        made.places[at] = copy.deepcopy(self.places[at], {id(rules): rules})
        return made

    def steps(self):
        first = {}
        for number, (_, fact) in enumerate(self.writes):
            first.setdefault(fact[1], ("write", fact[1], number))
        return [
            *first.values(),
            *(("arrive", to, item) for to, box in self.boxes.items() for item in set(box)),
        ]

    def after(self, step, rules):
        what, at, told = step
        made = self.copied(at, rules)
        if what == "write":
            how, (relation, *row) = self.writes[told]
            made.writes = self.writes[:told] + self.writes[told + 1 :]
            made.write(at, (relation, tuple(row)), present=how == "insert")
        else:
            box = list(made.boxes[at])
            box.remove(told)
            made.boxes[at] = tuple(box)
            made.arrive(at, told)
        return made

    def put(self, to, items):
        self.boxes[to] = tuple(sorted([*self.boxes[to], *items], key=repr))

    def key(self):
        return self.writes, tuple(self.boxes.values()), tuple(self.state(p) for p in self.places.values())


class Provenance(World):
    def __init__(self, rules, names):
        super().__init__({name: ProvenancePlace(name, rules, identify) for name in names})

    def write(self, at, fact, *, present):
        self.places[at].write(fact, present=present)
        self.send(at)

    def arrive(self, at, item):
        self.places[at].hear(at, [item])
        self.send(at)

    def send(self, at):
        for to, items in self.places[at].take().add.items():
            self.put(to, items)

    def state(self, place):
        def named(mask):
            return frozenset(place._ids_of(mask))

        def monomials(kept):
            return frozenset((fact, frozenset(map(named, masks))) for fact, masks in kept.items())

        def lengths(kept):
            return frozenset((place._ids[bit], length) for bit, length in kept.items())

        sent = frozenset(
            (to, monomials(channel.monomials), lengths(channel.lengths))
            for to, channel in place._channels.items()
        )
        return monomials(place._monomials), lengths(place._lengths), sent, frozenset(place._shown)


class Counting(World):
    def __init__(self, rules, names):
        super().__init__({name: CountingPlace(name, rules) for name in names})

    def write(self, at, fact, *, present):
        if self.places[at].write(fact, present=present):
            self.send(at, [])

    def arrive(self, at, update):
        self.send(at, [update])

    def send(self, at, arrived):
        moves = self.places[at].run(arrived)
        self.put(at, [update for update in arrived if update not in moves.done])
        for to, updates in moves.send.items():
            self.put(to, updates)

    def state(self, place):
        return frozenset((fact, frozenset(counts.items())) for fact, counts in place._held.items())


def every_schedule(kind, example):
    """Visit every state; return those at rest."""
    rules = compiled(example)
    world = kind(rules, example.places)
    world.writes = tuple(("insert", fact) for fact in example.base)
    while steps := world.steps():
        world = world.after(min(steps, key=repr), rules)
    world.writes = example.writes
    seen, waiting, ends = {world.key()}, [world], []
    while waiting:
        world = waiting.pop()
        steps = world.steps()
        if not steps:
            ends.append(world)
        here, stuck = world.key(), bool(steps)
        for step in steps:
            after = world.after(step, rules)
            key = after.key()
            stuck = stuck and key == here
            if key not in seen:
                seen.add(key)
                waiting.append(after)
        assert not stuck, "deletions wait for what never comes"
        assert len(seen) < 5_000
    return ends


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_schedule_ends_as_it_should(kind, name):
    example = EXAMPLES[name]
    names = {atom.name for rule in example.rules for atom in (rule.head, *rule.body)}
    ends = every_schedule({"Provenance": Provenance, "Counting": Counting}[kind], example)
    assert ends
    for world in ends:
        found = {(n, *row) for place in world.places.values() for n in names for row in place.rows(n)}
        assert found == example.expected()
