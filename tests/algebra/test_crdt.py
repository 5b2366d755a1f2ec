import math
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview import crdt
from everview.algebra.crdt.contributions import Contributions, Delta, dots
from everview.algebra.crdt.counter import Count
from everview.algebra.lattices import DotSet
from everview.errors import DataError, MissingDependencyError
from everview.testing import check_crdt


def within(bound):
    def close(a, b):
        if a is None or b is None:
            return a is b
        if isinstance(a, tuple):
            return all(map(close, a, b))
        return abs(a - b) <= bound * max(abs(a), abs(b), 1)

    return close


KINDS = {
    "counter": (crdt.Counter, [lambda r: r.add(), lambda r: r.add(2), lambda r: r.add(0)]),
    "sum of ints": (crdt.Sum, [lambda r: r.add(3), lambda r: r.subtract(5), lambda r: r.add(-4)]),
    "sum of floats": (
        lambda s: crdt.Sum(s, of=float),
        [lambda r: r.add(0.1), lambda r: r.add(1e308), lambda r: r.subtract(1e308), lambda r: r.add(5e-324)],
    ),
    "sum of decimals": (
        lambda s: crdt.Sum(s, of=Decimal),
        [lambda r: r.add(Decimal("0.10")), lambda r: r.subtract(Decimal("1e-38")), lambda r: r.add(7)],
    ),
    "average": (crdt.Average, [lambda r: r.add(0.1), lambda r: r.add(0.7), lambda r: r.add(2)]),
    "average of decimals": (
        lambda s: crdt.Average(s, of=Decimal),
        [lambda r: r.add(Decimal("0.1")), lambda r: r.add(Decimal(3))],
    ),
    "maximum": (crdt.Maximum, [lambda r: r.add(1), lambda r: r.add(5), lambda r: r.add(-3)]),
    "minimum": (lambda s: crdt.Minimum(s, of=str), [lambda r: r.add("b"), lambda r: r.add("a")]),
    "top-n": (
        lambda s: crdt.TopN(s, 2),
        [
            lambda r: r.add("x", 3),
            lambda r: r.subtract("x", 2),
            lambda r: r.add("y"),
            lambda r: r.add("z", 2),
        ],
    ),
    "set": (crdt.Set, [lambda r: r.add("a"), lambda r: r.add("b"), lambda r: r.add(1)]),
    "set by key": (
        lambda s: crdt.Set(s, key=lambda e: e[0]),
        [lambda r: r.add((1, "x")), lambda r: r.add((1, "y")), lambda r: r.add((2, "x"))],
    ),
    "map of counters": (
        lambda s: crdt.Map(s, crdt.Counter(s)),
        [lambda r: r.update("a"), lambda r: r.update("b", 4), lambda r: r.update("a", 2)],
    ),
    "map of maps": (
        lambda s: crdt.Map(s, crdt.Map(s, crdt.Maximum(s))),
        [lambda r: r.update("a", "x", 1), lambda r: r.update("a", "y", 2), lambda r: r.update("a", "x", 3)],
    ),
    "bag": (crdt.Bag, [lambda r: r.insert("a"), lambda r: r.insert("b", 2), lambda r: r.contribute(-_A)]),
}
_A = crdt.Bag("_").aggregate.lift("a")

SKETCHES = {
    "distinct count": (
        crdt.DistinctCount,
        [lambda r: r.add(1, 2, 3), lambda r: r.add("a", 2.5), lambda r: r.add(3)],
    ),
    "large distinct count": (
        crdt.DistinctCount,
        [lambda r: r.add(*range(9_000)), lambda r: r.add(*range(5_000, 15_000))],
    ),
    "quantiles": (
        lambda s: crdt.Quantiles(s, ranks=(0.1, 0.5)),
        [lambda r: r.add(1, 2, 3), lambda r: r.add(2), lambda r: r.add(0.5, 9)],
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_crdt_obeys_its_laws(name):
    make, updates = KINDS[name]
    check_crdt(make, updates)


@pytest.mark.parametrize("name", SKETCHES)
def test_every_sketch_obeys_its_laws_within_its_error_bound(name):
    make, updates = SKETCHES[name]
    check_crdt(make, updates, equal=within(0.05))


def test_random_updates_obey_the_laws():
    amounts = st.integers(-9, 9)
    check_crdt(crdt.Sum, amounts.map(lambda n: lambda r: r.add(n)))
    pairs = st.tuples(st.sampled_from("xyz"), amounts)
    check_crdt(lambda s: crdt.TopN(s, 2), pairs.map(lambda p: lambda r: r.add(*p)))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["p", "q", "w1", "w2"]),
            st.sampled_from(["update", "flush", "deliver", "join", "promote"]),
            st.integers(-5, 5),
            st.randoms(use_true_random=False),
        ),
        max_size=25,
    )
)
def test_random_histories_count_every_contribution_once(history):
    """Two primaries, two hollow workers; deltas lost, doubled, reordered: the total is what was added."""
    replicas = {name: crdt.Sum(name) for name in ("p", "q")}
    replicas |= {name: replicas["p"].hollow(name) for name in ("w1", "w2")}
    network, added = [], 0
    for name, action, amount, rng in history:
        replica = replicas[name]
        if action == "update":
            replica.add(amount)
            added += amount
        elif action == "flush" and (delta := replica.flush()):
            network.append(delta)
        elif action == "deliver" and network:
            replica.merge_delta(rng.choice(network))
        elif action == "join":
            replica.join(replicas[rng.choice(["p", "q"])])
        elif action == "promote" and replica.is_hollow:
            replica.promote(replicas["q"])
    for replica in replicas.values():
        replica.flush()
    for delta in [d for replica in replicas.values() for d in replica.outbox.values()]:
        replicas["p"].merge_delta(delta)
    assert replicas["p"].value == added


def test_deltas_stay_in_the_outbox_until_acknowledged():
    counter = crdt.Counter("a").hollow("w")
    for _ in range(3):
        counter.add()
        counter.flush()
    assert list(counter.outbox) == [1, 2, 3]
    assert counter.flush() is None
    counter.acknowledge(2)
    assert list(counter.outbox) == [3]
    assert counter.value == 3


def test_a_state_knows_its_dots_and_closes_gaps():
    primary, worker = crdt.Counter("p"), crdt.Counter("p").hollow("w")
    deltas = []
    for amount in (1, 10, 100):
        worker.add(amount)
        deltas.append(worker.flush())
    primary.merge_delta(deltas[2])
    assert (primary.value, dots(primary.state())) == (100, DotSet([("w", 3)]))
    primary.merge_delta(deltas[0])
    primary.merge_delta(deltas[1])
    assert primary.value == 111
    assert dots(primary.state()).runs == {"w": ((1, 3),)}
    assert primary.state()["w"].ahead == {}


def test_float_sums_do_not_depend_on_order_and_leave_no_trace():
    terms = [1e16, 1.0, -1e16, 0.1, 0.2]
    sums = set()
    for order in permutations(terms):
        total = crdt.Sum("a", of=float)
        for term in order:
            total.add(term)
        sums.add(total.value)
        for term in order:
            total.subtract(term)
        assert total.value == 0.0
    assert sums == {math.fsum(terms)}


def test_a_sum_beyond_the_largest_float_is_infinite_until_it_comes_back():
    total = crdt.Sum("a", of=float)
    total.add(1e308)
    total.add(1e308)
    assert total.value == math.inf
    total.subtract(1.5e308)
    assert total.value == 5e307
    total.subtract(1e308)
    total.subtract(1.7e308)
    total.subtract(1e308)
    assert total.value == -math.inf


def test_decimals_add_exactly_over_76_digits():
    total = crdt.Sum("a", of=Decimal)
    total.add(Decimal("9" * 38))
    total.add(Decimal("1e-38"))
    assert str(total.value) == "9" * 38 + "." + "0" * 37 + "1"
    total.subtract(Decimal("9" * 38))
    assert total.value == Decimal("1e-38")


def test_averages_are_rounded_once():
    mean = crdt.Average("a")
    for term in (0.1, 0.2, 0.3):
        mean.add(term)
    assert mean.value == float(sum(map(Fraction, (0.1, 0.2, 0.3))) / 3)
    assert crdt.Average("a").value is None
    thirds = crdt.Average("a", of=Decimal)
    for term in (1, 0, 0):
        thirds.add(term)
    assert thirds.value == Decimal("0." + "3" * 38)


def test_top_n_survives_a_decrement_and_breaks_ties_by_key():
    top = crdt.TopN("a", 2)
    for word, times in (("x", 5), ("z", 4), ("y", 4), ("w", 3)):
        top.add(word, times)
    assert top.value == (("x", 5), ("y", 4))
    top.subtract("x", 5)
    assert top.value == (("y", 4), ("z", 4))
    mixed = crdt.TopN("a", 3)
    for key in ("a", 1, (2, "b")):
        mixed.add(key)
    assert [key for key, _ in mixed.value] == [1, "a", (2, "b")]


def test_of_two_accounts_of_one_thing_the_same_wins_in_either_order():
    winners = set()
    for order in permutations([(7, "hello"), (7, "bye")]):
        tweets = crdt.Set("a", key=lambda tweet: tweet[0])
        for tweet in order:
            tweets.add(tweet)
        winners |= tweets.value
    assert winners == {(7, "hello")}


def test_distinct_count_and_quantiles_are_close():
    seen = crdt.DistinctCount("a")
    seen.add(*range(100_000))
    assert seen.value == pytest.approx(100_000, rel=0.05)
    assert crdt.DistinctCount("a").value == 0.0
    numbers = crdt.Quantiles("a", ranks=(0.0, 0.5, 1.0))
    assert numbers.value is None
    numbers.add(*range(10_001))
    low, middle, high = numbers.value
    assert (low, high) == (0.0, 10_000.0)
    assert middle == pytest.approx(5_000, abs=300)


def test_merging_a_sketch_with_itself_through_replicas_does_not_double_it():
    one, other = crdt.Quantiles("a"), crdt.Quantiles("b")
    one.add(*range(100))
    for _ in range(20):
        other.join(one)
        one.join(other)
    import datasketches as library

    held = library.kll_doubles_sketch.deserialize(one.lattice.total(one.state()))
    assert held.n == 100


BAD = {
    "negative count": lambda: crdt.Counter("a").add(-1),
    "count of a bool": lambda: crdt.Counter("a").add(True),
    "count of a float": lambda: crdt.Counter("a").add(1.0),
    "empty source": lambda: crdt.Counter(""),
    "source that is no name": lambda: crdt.Counter(7),
    "float into a sum of ints": lambda: crdt.Sum("a").add(1.5),
    "decimal into a sum of floats": lambda: crdt.Sum("a", of=float).add(Decimal(1)),
    "bool into a sum": lambda: crdt.Sum("a").add(True),
    "text into a sum": lambda: crdt.Sum("a").add("1"),
    "NaN into a sum": lambda: crdt.Sum("a", of=float).add(math.nan),
    "infinity into a sum": lambda: crdt.Sum("a", of=float).add(math.inf),
    "decimal NaN into a sum": lambda: crdt.Sum("a", of=Decimal).add(Decimal("nan")),
    "39 digits": lambda: crdt.Sum("a", of=Decimal).add(Decimal("1" * 39)),
    "39 places": lambda: crdt.Sum("a", of=Decimal).add(Decimal("1e-39")),
    "sum of text": lambda: crdt.Sum("a", of=str),
    "NaN into an average": lambda: crdt.Average("a").add(math.nan),
    "float into a maximum of ints": lambda: crdt.Maximum("a").add(1.5),
    "NaN into a minimum": lambda: crdt.Minimum("a", of=float).add(math.nan),
    "a maximum without order": lambda: crdt.Maximum("a", of=dict).add({}),
    "top-0": lambda: crdt.TopN("a", 0),
    "top of an unhashable": lambda: crdt.TopN("a", 1).add([]),
    "unhashable element": lambda: crdt.Set("a").add([]),
    "NaN as an element": lambda: crdt.Set("a").add(math.nan),
    "unhashable key": lambda: crdt.Map("a", crdt.Counter("a")).update([]),
    "bad inner amount": lambda: crdt.Map("a", crdt.Counter("a")).update("k", -2),
    "map of no crdt": lambda: crdt.Map("a", int),
    "lg_k too small": lambda: crdt.DistinctCount("a", lg_k=3),
    "k too large": lambda: crdt.Quantiles("a", k=70_000),
    "rank above 1": lambda: crdt.Quantiles("a", ranks=(1.5,)),
    "bytes into a distinct count": lambda: crdt.DistinctCount("a").add(b"x"),
    "65 bits into a distinct count": lambda: crdt.DistinctCount("a").add(2**63),
    "NaN into quantiles": lambda: crdt.Quantiles("a").add(math.nan),
    "text into quantiles": lambda: crdt.Quantiles("a").add("x"),
    "zero copies": lambda: crdt.Bag("a").insert("r", 0),
    "negative copies": lambda: crdt.Bag("a").delete("r", -1),
    "joining different aggregates": lambda: crdt.Sum("a").join(crdt.Sum("b", of=float)),
    "joining different sizes": lambda: crdt.TopN("a", 2).join(crdt.TopN("b", 3)),
    "promoting a full replica": lambda: crdt.Counter("a").promote(crdt.Counter("b")),
    "delta number 0": lambda: Delta("a", 0, 1),
    "no delta": lambda: crdt.Counter("a").merge_delta(("a", 1, 1)),
    "acknowledging a negative": lambda: crdt.Counter("a").acknowledge(-1),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_a_typed_error(name):
    with pytest.raises(DataError):
        BAD[name]()


def test_bytes_that_are_no_sketch_are_refused_and_change_nothing():
    for replica in (crdt.DistinctCount("a"), crdt.Quantiles("a")):
        replica.add(1, 2)
        before = replica.value
        for hostile in (b"\x00", b"\xff" * 40, b"\x01\x01\x07\x0c\x00\x00\x00\x00"):
            with pytest.raises(DataError, match="not a sketch"):
                replica.aggregate.value(replica.aggregate.combine(replica.unsent, hostile))
        assert replica.value == before


def test_a_rejected_update_changes_nothing():
    total = crdt.Sum("a")
    total.add(2)
    with pytest.raises(DataError):
        total.add(0.5)
    assert total.value == 2
    assert total.flush().contribution == (2, 0)


def test_sketches_say_how_to_install_what_they_need(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(MissingDependencyError, match=r"everview\[sketches\]"):
        crdt.DistinctCount("a").add(1)


def test_the_lattice_is_usable_on_its_own():
    lattice = Contributions(Count())
    one, two = lattice.single(Delta("s", 1, 5)), lattice.single(Delta("s", 2, 7))
    assert lattice.total(lattice.join(two, one)) == 12
    assert lattice.merge(one, one) == (one, False)
    assert not lattice.leq(two, one)
