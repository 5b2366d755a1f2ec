"""Worked programs for both modes, every schedule of small ones, random schedules of larger ones.

In the end, however updates and rows were ordered, all places together hold what a centralised evaluation of
the unlocalised program holds.
"""

import random
from dataclasses import dataclass

from tests.located.model import counting, provenance
from tests.located.model.rules import fixpoint, is_variable, localise, parse


class WrongError(AssertionError):
    """What the places hold together is not what the program says, or they never come to rest."""


@dataclass(frozen=True)
class Example:
    """A program, the base facts that are settled before, and the writes that meet in every order."""

    text: str
    base: tuple
    writes: tuple

    @property
    def rules(self):
        return parse(self.text)

    @property
    def places(self):
        told = (*self.base, *(fact for _, fact in self.writes))
        named = {place for fact in told for place in fact[1:]}
        fixed = {atom.place for rule in self.rules for atom in (rule.head, *rule.body)}
        return sorted(named | {place for place in fixed if not is_variable(place)})

    def expected(self):
        base = set(self.base)
        for what, fact in self.writes:
            base = base | {fact} if what == "insert" else base - {fact}
        names = {atom.name for rule in self.rules for atom in (rule.head, *rule.body)}
        return {fact for fact in fixpoint(self.rules, base) if fact[0] in names}


def facts(relation, *pairs):
    return tuple((relation, *pair) for pair in pairs)


def writes(text, relation="link"):
    """The writes of a text such as `+ab -bc`."""
    return tuple(("insert" if word[0] == "+" else "delete", (relation, *word[1:])) for word in text.split())


HOPS = """
hop(@X, Y) :- link(@X, Z), link(@Z, Y).
tri_hop(@X, Y) :- hop(@X, Z), link(@Z, Y).
"""
REACH = """
reach(@S, D) :- link(@S, D).
reach(@S, D) :- link(@S, Z), reach(@Z, D).
"""
CIRCLE = """
p(@1) :- a(@0).
q(@2) :- p(@1).
p(@1) :- q(@2).
"""
PAIR = """
p(@1) :- q(@1), r(@1).
q(@1) :- s(@0).
"""
NON_LINEAR = """
reach(@S, D) :- link(@S, D).
reach(@S, D) :- reach(@S, Z), reach(@Z, D).
"""
SIBLINGS = """
twins(@Y, Z) :- link(@X, Y), link(@X, Z).
"""
FORK = """
p(@1) :- a(@0).
q(@0) :- p(@1).
q(@2) :- p(@1).
"""

EXAMPLES = {
    "hops": Example(HOPS, facts("link", "ab", "ad", "dc", "bc", "ch", "fg"), writes("+df +af -ab")),
    "circle, insert": Example(CIRCLE, (), (("insert", ("a", "0")),)),
    "circle, delete": Example(CIRCLE, (("a", "0"),), (("delete", ("a", "0")),)),
    "appendix b": Example(CIRCLE, (), (("insert", ("a", "0")), ("delete", ("a", "0")))),
    "appendix b, and back": Example(
        CIRCLE, (), tuple((what, ("a", "0")) for what in ("insert", "delete", "insert"))
    ),
    "conflicting pair": Example(PAIR, (("s", "0"),), (("insert", ("r", "1")), ("delete", ("s", "0")))),
    "directed path": Example(REACH, (), writes("+12 +23")),
    "directed path, longer": Example(REACH, facts("link", "34"), writes("+12 +23")),
    "path that breaks": Example(REACH, facts("link", "12", "23"), writes("-23 -12")),
    "circle of two": Example(REACH, facts("link", "12"), writes("+21")),
    "circle of two that breaks": Example(REACH, facts("link", "12", "21"), writes("-21")),
    "absent": Example(REACH, facts("link", "12"), writes("-23 +12")),
    "self-join": Example(SIBLINGS, facts("link", "12"), writes("+13 -12")),
    "non-linear": Example(NON_LINEAR, facts("link", "12"), writes("+23 -12")),
}


def settled(world, example):
    """A world in which the base of an example has come to rest, in one order."""
    if isinstance(world, provenance.World):
        world.writes = tuple(("insert", fact) for fact in example.base)
    else:
        for fact in example.base:
            world.write("insert", fact)
    steps = 0
    while ready := world.steps():
        world = world.after(min(ready, key=repr))
        steps += 1
        if steps > 3_000:
            raise WrongError("it does not come to rest")
    return world


def begin(mode, example, shortcuts, **how):
    rules = localise(example.rules, shortcuts)
    world = settled(mode.World(rules, example.places, shortcuts, **how), example)
    if mode is provenance:
        world.writes = example.writes
    else:
        for what, fact in example.writes:
            world.write(what, fact)
    return world


def shown(world, example):
    names = {atom.name for rule in example.rules for atom in (rule.head, *rule.body)}
    return {fact for fact in world.rows() if fact[0] in names}


def every_schedule(mode, example, shortcuts=frozenset(), limit=100_000, **how):
    """Visit every state that some schedule reaches; return how many. Each that is at rest must be right."""
    try:
        start = begin(mode, example, shortcuts, **how)
        seen, waiting, ends = {start.key()}, [start], 0
        while waiting:
            world = waiting.pop()
            ready = world.steps()
            if not ready:
                ends += 1
                if shown(world, example) != example.expected():
                    raise WrongError(f"{shown(world, example)} is not {example.expected()}")
            for step in ready:
                after = world.after(step)
                if (key := after.key()) not in seen:
                    seen.add(key)
                    waiting.append(after)
            if len(seen) > limit:
                raise WrongError("it does not come to rest")
    except counting.StuckError as error:
        raise WrongError(str(error)) from error
    return len(seen), ends


# Random schedules.

PROGRAMS = (REACH, HOPS, NON_LINEAR, SIBLINGS)


def history(rng, nodes, count):
    """Links that come and go, now and then one that is not there, or there already."""
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    pool = rng.sample(pairs, min(len(pairs), len(nodes) + 1))
    return [(rng.choice(["insert", "insert", "delete"]), ("link", *rng.choice(pool))) for _ in range(count)]


def applied(base, told):
    for what, fact in told:
        base = base | {fact} if what == "insert" else base - {fact}
    return base


def random_provenance(seed, shortcuts=frozenset()):
    """One random run: writes and rows in any order, rows again; right at each rest."""
    rng = random.Random(f"located provenance {seed}")
    text = rng.choice(PROGRAMS)
    nodes = "abcdef"[: rng.choice([3, 4, 5, 6])]
    example = Example(text, (), tuple(history(rng, nodes, rng.choice([6, 12, 24]))))
    rules, whole = localise(example.rules, shortcuts), rng.random() < 0.5
    world = provenance.World(rules, nodes, shortcuts, whole=whole)
    world.writes = example.writes
    for _ in range(20_000):
        ready = world.steps()
        if not ready:
            break
        step = rng.choice(ready)
        world = world.after(step)
        if step[0] == "arrive" and not shortcuts and rng.random() < 0.05:
            assert world.again(*step[1:]).key() == world.key(), "a row that arrives again changes something"
    else:
        raise WrongError("it does not come to rest")
    if shown(world, example) != example.expected():
        raise WrongError(f"{shown(world, example)} is not {example.expected()}")


def random_counting(seed, shortcuts=frozenset()):
    """One random run over channels that lose and repeat, in bursts; the detector tells when all is quiet."""
    rng = random.Random(f"located counting {seed}")
    text = rng.choice((REACH, HOPS, SIBLINGS, CIRCLE, PAIR, FORK))
    rules = parse(text)
    if text in (CIRCLE, PAIR, FORK):
        nodes, pool = "012", [("s", "0"), ("r", "1")] if text == PAIR else [("a", "0")]
    else:
        nodes = "abcde"
        pairs = [("link", a, b) for a in nodes for b in nodes if a < b]
        pool = rng.sample(pairs, 5) + ([("link", "b", "a")] if text == REACH and rng.random() < 0.3 else [])
    network = counting.Network(localise(rules, shortcuts), nodes, rng, shortcuts)
    base = frozenset()
    names = {atom.name for rule in rules for atom in (rule.head, *rule.body)}
    for _ in range(3):
        count = rng.choice([2, 4, 6])
        told = [(rng.choice(["insert", "insert", "delete"]), rng.choice(pool)) for _ in range(count)]
        for what, fact in told:
            network.write(what, fact)
            for _ in range(rng.choice([0, 0, 5])):
                network.step()
        base = applied(base, told)
        network.begin_asking()
        for _ in range(20_000):
            if network.step():
                break
            if network.is_stuck() or network.picks > 4_000:
                raise WrongError("it does not come to rest")
        else:
            raise WrongError("the detector never says that all is quiet")
        if not network.is_done():
            raise WrongError("the detector says that all is quiet, and it is not")
        expected = {fact for fact in fixpoint(rules, base) if fact[0] in names}
        if (found := {fact for fact in network.rows() if fact[0] in names}) != expected:
            raise WrongError(f"{found} is not {expected}")
