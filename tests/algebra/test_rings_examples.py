"""Worked examples of Rings: the two strawmen and Appendix B, exhaustively on small structures, and −1."""

from itertools import permutations, product

import pytest

from everview.algebra.causal_length import CausalLengths
from everview.crdt import Bag
from everview.testing import LawViolation, check_group, check_lattice, check_ring


def abelian_groups(size):
    """Every abelian group on {0 … size−1} with neutral element 0, as its table of +."""
    cells = [(a, b) for a in range(1, size) for b in range(a, size)]
    for values in product(range(size), repeat=len(cells)):
        table = {(a, b): v for (a, b), v in zip(cells, values, strict=True)}
        table |= {(b, a): v for (a, b), v in table.items()} | {(0, a): a for a in range(size)}
        table |= {(a, 0): a for a in range(size)}
        associative = all(
            table[table[a, b], c] == table[a, table[b, c]] for a, b, c in product(range(size), repeat=3)
        )
        if associative and all(any(table[a, b] == 0 for b in range(size)) for a in range(size)):
            yield table


class Table:
    """A structure given by its tables; the sum also posing as a join."""

    def __init__(self, plus, times=None):
        self._plus, self._times = plus, times
        self._size = max(a for a, _ in plus) + 1

    def zero(self):
        return 0

    bottom = zero

    def one(self):
        return next(e for e in range(self._size) if all(self._times[e, a] == a for a in range(self._size)))

    def plus(self, a, b):
        return self._plus[a, b]

    def negate(self, a):
        return next(b for b in range(self._size) if self._plus[a, b] == 0)

    def times(self, a, b):
        return self._times[a, b]


class PlusAsJoin(Table):
    def join(self, a, b):
        return self._plus[a, b]

    def leq(self, a, b):
        return self.join(a, b) == b

    def merge(self, a, b):
        return self.join(a, b), not self.leq(b, a)


def partial_orders(size):
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b]
    for chosen in product([False, True], repeat=len(pairs)):
        order = {(a, a) for a in range(size)} | {p for p, yes in zip(pairs, chosen, strict=True) if yes}
        antisymmetric = all((b, a) not in order or a == b for a, b in order)
        if antisymmetric and all((a, d) in order for a, b in order for c, d in order if b == c):
            yield order


SIZES = [2, 3, 4]


@pytest.mark.parametrize("size", SIZES)
def test_the_enumerated_tables_are_groups(size):
    groups = list(abelian_groups(size))
    assert len(groups) == {2: 1, 3: 1, 4: 4}[size]
    for table in groups:
        check_group(Table(table), range(size))


@pytest.mark.parametrize("size", [2, 3])
def test_strawman_1_no_order_makes_a_group_update_monotone(size):
    """Updates of a CRDT only go up: x ≤ x + y. In no order on a group with two elements can that be."""
    orders = list(partial_orders(size))
    assert len(orders) == {2: 3, 3: 19}[size]
    for plus in abelian_groups(size):
        for order in orders:
            assert not all((x, plus[x, y]) in order for x, y in product(range(size), repeat=2))


@pytest.mark.parametrize("size", SIZES)
def test_strawman_2_no_group_sum_is_a_merge(size):
    """A merge is idempotent; the only group whose sum is has one element."""
    for plus in abelian_groups(size):
        with pytest.raises(LawViolation) as violation:
            check_lattice(PlusAsJoin(plus), range(size))
        assert violation.value.law == "idempotent"
    check_lattice(PlusAsJoin({(0, 0): 0}), [0])


def boolean_ring():
    bits = list(product([0, 1], repeat=2))
    return Table({(a, b): a ^ b for a, b in bits}, {(a, b): a & b for a, b in bits})


def test_appendix_b_the_boolean_ring_is_a_ring_whose_product_could_be_a_merge():
    ring = boolean_ring()
    check_ring(ring, [0, 1])
    assert all(ring.times(a, a) == a for a in (0, 1))


def test_appendix_b_but_its_sum_is_not_monotone_in_the_order_of_that_merge():
    """With × as the join, a ≤ b means a × b = b, so 1 ≤ 0; and 0 + 1 = 1 goes down again."""
    ring = boolean_ring()

    def leq(a, b):
        return ring.times(a, b) == b

    assert leq(1, 0)
    assert not leq(0, 1)
    broken = [(x, y) for x, y in product([0, 1], repeat=2) if not leq(x, ring.plus(x, y))]
    assert broken == [(0, 1)]


def test_appendix_b_every_idempotent_ring_on_up_to_four_elements_is_made_of_boolean_ones():
    """And in each of them + is not monotone, so + cannot be the update where × is the merge."""
    found = 0
    for size in SIZES:
        for plus in abelian_groups(size):
            for times in idempotent_products(size, plus):
                found += 1
                assert all(plus[a, a] == 0 for a in range(size))  # characteristic 2, as XOR
                assert not all(times[x, plus[x, y]] == plus[x, y] for x, y in product(range(size), repeat=2))
    assert found == 1 + 3


def idempotent_products(size, plus):
    """Every product that makes an idempotent commutative ring of this sum."""
    cells = [(a, b) for a in range(1, size) for b in range(a + 1, size)]
    for values in product(range(size), repeat=len(cells)):
        times = {(a, b): v for (a, b), v in zip(cells, values, strict=True)}
        times |= {(b, a): v for (a, b), v in times.items()} | {(a, a): a for a in range(size)}
        times |= {(0, a): 0 for a in range(size)} | {(a, 0): 0 for a in range(size)}
        ring = Table(plus, times)
        if any(all(times[e, a] == a for a in range(size)) for e in range(size)):
            try:
                check_ring(ring, range(size))
            except LawViolation:
                continue
            yield times


def test_the_minus_one_anomaly():
    """{A: 1} deleted at two sites at once has weight −1, and a following insertion does not show it."""
    origin, other = Bag("origin"), Bag("other")
    origin.insert("A")
    other.join(origin)
    assert origin.delete("A") == other.delete("A") == 1
    origin.join(other)
    assert origin.value["A"] == -1
    origin.insert("A")
    assert origin.value["A"] == 0
    assert origin.delete("A") == 0


def test_the_same_history_under_causal_lengths_shows_the_tuple():
    start = CausalLengths().insert("A")
    merged = start.delete("A") | start.delete("A")
    assert merged["A"] == 2
    again = merged.insert("A")
    assert again["A"] == 3
    assert again.is_present("A")


def test_the_guard_deletes_no_more_than_is_seen():
    bag = Bag("a")
    bag.insert("A", 2)
    assert bag.delete("A", 5) == 2
    assert bag.delete("A") == 0
    assert bag.value["A"] == 0
    assert len(bag.value) == 0


def test_a_wrapped_zset_converges_whatever_the_network_does():
    """Three deltas, every order, each doubled: the wrapper's point."""
    source = Bag("s")
    deltas = []
    for change in (lambda: source.insert("A"), lambda: source.insert("B", 2), lambda: source.delete("A")):
        change()
        deltas.append(source.flush())
    for order in permutations([*deltas, deltas[0], deltas[2]]):
        received = Bag("r")
        for delta in order:
            received.merge_delta(delta)
        assert dict(received.value.items()) == {"B": 2}
