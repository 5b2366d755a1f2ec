"""Rules at places: both modes are right under every schedule; each shortcut, put back, is caught."""

import pytest
from tests.located.model import counting, provenance
from tests.located.model import rules as located_rules
from tests.located.model.rules import localise, parse
from tests.located.model.worlds import (
    CIRCLE,
    EXAMPLES,
    FORK,
    REACH,
    Example,
    WrongError,
    begin,
    every_schedule,
    facts,
    random_counting,
    random_provenance,
    settled,
    shown,
    writes,
)

ROW_BY_ROW = sorted(set(EXAMPLES) - {"hops"})
"""Where each row may travel alone; of hops there are too many orders."""


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_counting_is_right_under_every_schedule(name):
    _, ends = every_schedule(counting, EXAMPLES[name])
    assert ends == 1, "however they are ordered, all schedules end in the same state"


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_provenance_is_right_under_every_schedule(name):
    every_schedule(provenance, EXAMPLES[name])


def test_provenance_is_right_under_every_schedule_of_messages():
    for example in EXAMPLES.values():
        every_schedule(provenance, example, whole=True)


def test_hops_are_those_of_the_paper():
    world = begin(counting, EXAMPLES["hops"], frozenset())
    while ready := world.steps():
        world = world.after(ready[0])
    held = {}
    for place in world.places.values():
        for (fact, _, _), count in place.held.items():
            held[fact] = held.get(fact, 0) + count
    hops = dict.fromkeys((("hop", *pair) for pair in ("ac", "af", "ag", "bh", "dg", "dh")), 1)
    threes = dict.fromkeys((("tri_hop", *pair) for pair in ("ag", "ah")), 1)
    assert {
        fact: n for fact, n in held.items() if "hop_" not in fact[0] and fact[0] != "link"
    } == hops | threes


@pytest.mark.parametrize("block", range(4))
def test_a_thousand_random_schedules(block):
    for seed in range(250 * block, 250 * (block + 1)):
        random_provenance(seed)
        random_counting(seed)


def fails(run, *args, **how):
    try:
        run(*args, **how)
    except WrongError:
        return True
    return False


CAUGHT_BY = {
    (provenance, "drop the dead"): "appendix b, and back",
    (provenance, "no revival"): "appendix b, and back",
    (provenance, "lengths once"): "circle, delete",
    (provenance, "lengths first hand"): "directed path, longer",
    (provenance, "last length"): "appendix b",
    (provenance, "backwards"): "directed path",
    (counting, "no guard"): "absent",
    (counting, "discard deletes"): "appendix b",
    (counting, "no circles"): "circle, insert",
    (counting, "only new"): "self-join",
    (counting, "only old"): "self-join",
    (counting, "silent cut"): "directed path, longer",
    (counting, "backwards"): "directed path",
}
"""Which worked example shows what is wrong with a shortcut."""

AT_RANDOM = {
    (random_provenance, "silent cut"),
    (random_counting, "no dots"),
    (random_counting, "send once"),
    (random_counting, "ignore waiting"),
}


@pytest.mark.parametrize(("mode", "shortcut"), sorted(CAUGHT_BY, key=str))
def test_a_worked_example_catches_the_shortcut(mode, shortcut):
    example = EXAMPLES[CAUGHT_BY[mode, shortcut]]
    every_schedule(mode, example)
    assert fails(every_schedule, mode, example, frozenset([shortcut]), limit=1_000)


@pytest.mark.parametrize(("run", "shortcut"), sorted(AT_RANDOM, key=str))
def test_a_random_run_catches_the_shortcut(run, shortcut):
    assert any(fails(run, seed, frozenset([shortcut])) for seed in range(400))


def quiet_after_one_round(shortcuts):
    """Place 1 is asked before an update reaches it; what follows has come home when place 0 is asked."""
    network = counting.Network(localise(parse(FORK)), "012", None, shortcuts)
    network.write("insert", ("a", "0"))
    network.pick("0", *network.nodes["0"].waiting)
    network.ask("1")
    network.arrive("0", "1", 0)
    network.pick("1", *network.nodes["1"].waiting)
    network.arrive("1", "0", 0)
    network.pick("0", *network.nodes["0"].waiting)
    network.ask("0")
    return network.ask("2"), network.is_done()


def test_one_round_of_reports_is_not_enough():
    assert quiet_after_one_round(frozenset()) == (False, False)
    assert quiet_after_one_round(frozenset(["one wave"])) == (True, False)


def test_every_shortcut_is_caught():
    caught = {"one wave"} | {shortcut for _, shortcut in (*CAUGHT_BY, *AT_RANDOM)}
    assert caught == {*provenance.SHORTCUTS, *counting.SHORTCUTS, *located_rules.SHORTCUTS}


def test_a_link_is_sent_where_it_leads():
    assert list(map(str, localise(parse(REACH)))) == [
        "reach(@S, D) :- link(@S, D).",
        "reach_2_1(@Z, S) :- link(@S, Z).",
        "reach(@S, D) :- reach_2_1(@Z, S), reach(@Z, D).",
    ]


def test_places_that_nothing_leads_to_are_refused():
    with pytest.raises(ValueError, match="no place of p"):
        localise(parse("p(@X) :- q(@X), r(@Y)."))


def test_the_support_of_an_update_need_not_grow():
    """The measure of PSN's Theorem 20 does not fall: in p/q an update follows one with as long a support."""
    first = (counting.INSERT, ("p", "1"), frozenset([("a", "0"), ("p", "1"), ("q", "2")]), counting.NONE)
    place = counting.Place(localise(parse(CIRCLE)), frozenset())
    _, (follows,) = place.take(first)
    assert len(follows[2]) == len(first[2]) == 3
    assert len(follows[3]) > len(first[3]), "what grows is the infinite-count set"


def test_counts_in_a_circle_say_nothing():
    world = begin(counting, EXAMPLES["circle, insert"], frozenset())
    while ready := world.steps():
        world = world.after(ready[0])
    assert sum(world.places["1"].held.values()) == 2, "one proof, and once round"
    assert shown(world, EXAMPLES["circle, insert"]) == {("a", "0"), ("p", "1"), ("q", "2")}


@pytest.mark.parametrize(("nodes", "monomials", "updates"), [("12", 4, 12), ("123", 24, 234)])
def test_what_annotations_cost_where_everyone_links_to_everyone(nodes, monomials, updates):
    pairs = [a + b for a in nodes for b in nodes if a != b]
    example = Example(REACH, (), writes(" ".join("+" + pair for pair in pairs)))
    places = provenance.World(localise(example.rules), nodes, whole=True)
    world = settled(places, Example(REACH, facts("link", *pairs), ()))
    kept = [len(m) for p in world.places.values() for fact, m in p.known.items() if fact[0] == "reach"]
    assert sum(kept) == monomials
    world, picks = begin(counting, example, frozenset()), 0
    while ready := world.steps():
        world, picks = world.after(ready[0]), picks + 1
    assert picks == updates
