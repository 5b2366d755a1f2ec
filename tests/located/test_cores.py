"""The cores of both modes, over a network that repeats and reorders, against a centralised evaluation."""

import hashlib
import random

import pytest
from tests.located.oracle import evaluate
from tests.located.programs import CIRCLE, HOPS, PROGRAMS, REACH, writable

from everview.errors import LimitError
from everview.language.datalog.localising import localise
from everview.language.datalog.parser import parse
from everview.located.counting import CountingPlace
from everview.located.items import Derivation, Length
from everview.located.provenance import ProvenancePlace
from everview.located.rules import Rules


def identify(fact):
    return hashlib.sha256(repr(fact).encode()).digest()[:16]


def rules_of(text):
    return Rules(localise(parse(text)))


class ByProvenance:
    """Places whose rows lie in mailboxes: any of them may arrive, early, late, again."""

    def __init__(self, text, nodes, rng):
        rules = rules_of(text)
        self.rng, self.relations = rng, {rule.head.relation for rule in parse(text).rules} | rules.base
        self.places = {node: ProvenancePlace(node, rules, identify) for node in nodes}
        self.boxes = {node: [] for node in nodes}
        self.late = {node: [] for node in nodes}
        self.shown = {node: set() for node in nodes}

    def write(self, fact, present):
        place = self.places[fact[1][0]]
        place.write(fact, present=present)
        self.collect(place)

    def collect(self, place):
        news = place.take()
        for fact, change in news.changes.items():
            assert (fact in self.shown[place.place]) == (change < 0)
            (self.shown[place.place].add if change > 0 else self.shown[place.place].remove)(fact)
        for to, items in news.add.items():
            self.boxes[to] += items

    def step(self):
        """Some of what lies in a mailbox arrives, in any order, and perhaps something once more."""
        full = [node for node, box in self.boxes.items() if box]
        if not full:
            return False
        node = self.rng.choice(full)
        box = self.boxes[node]
        self.rng.shuffle(box)
        cut = self.rng.choice([1, 2, 8])
        taken, self.boxes[node] = box[:cut], box[cut:]
        self.late[node] += taken
        again = self.rng.sample(self.late[node], min(len(self.late[node]), 2))
        self.places[node].hear(node, [*again, *taken])
        self.collect(self.places[node])
        return True

    def rows(self):
        return {
            (relation, row)
            for place in self.places.values()
            for relation in self.relations
            for row in place.rows(relation)
        }


class ByCounting:
    """Places between which updates travel, each once, in any order."""

    def __init__(self, text, nodes, rng):
        rules = rules_of(text)
        self.rng, self.relations = rng, {rule.head.relation for rule in parse(text).rules} | rules.base
        self.places = {node: CountingPlace(node, rules) for node in nodes}
        self.boxes = {node: [] for node in nodes}
        self.shown = {node: set() for node in nodes}

    def write(self, fact, present):
        node = fact[1][0]
        if self.places[node].write(fact, present=present):
            self.collect(node, self.places[node].run())

    def collect(self, node, moves):
        for fact, change in moves.changes.items():
            assert (fact in self.shown[node]) == (change < 0)
            (self.shown[node].add if change > 0 else self.shown[node].remove)(fact)
        for to, updates in moves.send.items():
            self.boxes[to] += updates

    def step(self):
        full = [node for node, box in self.boxes.items() if box]
        if not full:
            return False
        node = self.rng.choice(full)
        box = self.boxes[node]
        self.rng.shuffle(box)
        cut = self.rng.choice([1, 2, 8])
        moves = self.places[node].run(box[:cut])
        for update in moves.done:
            box.remove(update)
        self.collect(node, moves)
        return True

    rows = ByProvenance.rows


MODES = {"provenance": ByProvenance, "counting": ByCounting}


def run(mode, name, seed, *, count, writes, acyclic=False):
    text = PROGRAMS[name]
    rng = random.Random(f"{name} {seed}")
    nodes = "abcde"
    world = MODES[mode](text, nodes, rng)
    pool, base = writable(text, rng, nodes, count, acyclic), set()
    for _ in range(writes):
        fact, present = rng.choice(pool), rng.random() < 0.6
        (base.add if present else base.discard)(fact)
        world.write(fact, present)
        for _ in range(rng.choice([0, 0, 1, 5])):
            world.step()
        if rng.random() < 0.2:
            settle(world)
            compare(world, text, base)
    settle(world)
    compare(world, text, base)


def settle(world):
    for _ in range(20_000):
        if not world.step():
            return
    pytest.fail("it does not come to rest")


def compare(world, text, base):
    expected = {fact for fact in evaluate(text, base) if fact[0] in world.relations}
    assert world.rows() == expected
    shown = set().union(*world.shown.values())
    assert {fact for fact in shown if fact[0] in world.relations} == expected


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_provenance_is_what_a_centralised_evaluation_gives(name):
    for seed in range(25):
        run("provenance", name, seed, count=7, writes=14)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_counting_is_what_a_centralised_evaluation_gives(name):
    # Derivation sets explode where links go round in a circle, if both atoms of a rule recurse beyond use.
    for seed in range(25):
        run("counting", name, seed, count=4, writes=10, acyclic=name == "non_linear")


def test_a_limit_names_the_rule_and_what_to_do():
    rules = rules_of(REACH)
    place = ProvenancePlace("a", rules, identify, limit=2)
    names = "bcde"
    told = [Length("x", name.encode() * 16, 1) for name in names]
    told += [Derivation(("reach", ("a", "z")), frozenset([name.encode() * 16])) for name in names]
    with pytest.raises(LimitError, match=r"proofs by reach\(@s, d\) :- link.*Host the relations"):
        place.hear("a", told)


def test_a_limit_of_counting_names_the_rule():
    places = {node: CountingPlace(node, rules_of(REACH), longest=2) for node in "abc"}
    places["b"].write(("link", ("b", "c")), present=True)
    places["a"].write(("link", ("a", "b")), present=True)
    places["b"].run()
    sent = places["a"].run().send["b"]
    with pytest.raises(LimitError, match=r"a derivation of 4 facts by reach\(@s, d\) :- link\(@s, z\)"):
        places["b"].run(sent)


def test_a_base_fact_counts_once_however_often_it_is_written():
    place, fact = CountingPlace("a", rules_of(REACH)), ("link", ("a", "a"))
    assert place.write(fact, present=True)
    assert not place.write(fact, present=True), "it is going to be there"
    assert place.write(fact, present=False)
    assert not place.write(fact, present=False), "it is going to be gone"
    assert place.write(fact, present=True)
    counts = place.run().counts
    assert [n for derived, n in counts.items() if derived.fact == fact] == [1]


def test_a_place_that_went_back_goes_on_from_what_others_know():
    rules, fact = rules_of(REACH), ("link", ("a", "b"))
    id_ = identify(fact)
    for there, known, told in ((False, 1, 2), (False, 2, None), (True, 2, 3), (True, 3, None)):
        place = ProvenancePlace("a", rules, identify)
        place.hold([fact] if there else [])
        place.hear("b", [Length("a", id_, known), Derivation(("link_at_z", ("b", "a")), frozenset([id_]))])
        if there:
            place.write(fact, present=True)
        sent = [item for item in place.take().add.get("b", []) if isinstance(item, Length)]
        assert sent == ([] if told is None else [Length("a", id_, told)])


def test_why_is_the_live_minimal_proofs():
    world = ByProvenance(REACH, "abc", random.Random(1))
    for pair in ("ab", "bc", "ac"):
        world.write(("link", tuple(pair)), True)
    settle(world)
    ids = {pair: identify(("link", tuple(pair))) for pair in ("ab", "bc", "ac")}
    assert world.places["a"].monomials(("reach", ("a", "c"))) == {
        frozenset([ids["ac"]]),
        frozenset([ids["ab"], ids["bc"]]),
    }
    world.write(("link", ("a", "c")), False)
    settle(world)
    assert world.places["a"].monomials(("reach", ("a", "c"))) == {frozenset([ids["ab"], ids["bc"]])}


def test_rules_fire_over_what_is_live():
    place = ProvenancePlace("b", rules_of(REACH), identify)
    link, dead, live = (letter * 16 for letter in (b"l", b"d", b"v"))
    fact = ("reach", ("b", "z"))
    told = [Length("x", dead, 2), Length("x", live, 1), Length("a", link, 1)]
    place.hear("b", [*told, Derivation(fact, frozenset([dead])), Derivation(fact, frozenset([live]))])
    place.take()
    place.hear("b", [Derivation(("link_at_z", ("b", "a")), frozenset([link]))])
    sent = [item for item in place.take().add["a"] if isinstance(item, Derivation)]
    assert sent == [Derivation(("reach", ("a", "z")), frozenset([link, live]))]


def test_hops_are_those_of_the_paper():
    for mode in MODES.values():
        world = mode(HOPS, "abcdfgh", random.Random(3))
        for pair in ("ab", "ad", "dc", "bc", "ch", "fg"):
            world.write(("link", tuple(pair)), True)
        settle(world)
        for pair, present in (("df", True), ("af", True), ("ab", False)):
            world.write(("link", tuple(pair)), present)
        settle(world)
        found = {f"{name} {''.join(row)}" for name, row in world.rows() if "hop" in name}
        assert found == {f"hop {pair}" for pair in ("ac", "af", "ag", "bh", "dg", "dh")} | {
            "tri_hop ag",
            "tri_hop ah",
        }


def test_nothing_is_sent_where_nothing_changes():
    world = ByProvenance(CIRCLE, "abc", random.Random(4))
    world.write(("a", ("a",)), True)
    settle(world)
    world.write(("a", ("a",)), True)
    assert not any(world.boxes.values())
