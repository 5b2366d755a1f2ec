"""The complete searches, as far as a short test goes; and that they see every state the plain search sees."""

import itertools

import numpy as np
import pytest
from tests.model.explore import Explorer
from tests.model.quotient import KeyedQuotient, SetQuotient
from tests.model.quotient_add_wins import SITES, UNKNOWN, AddWinsQuotient
from tests.model.quotient_bag import BagQuotient, check_tables
from tests.model.relations import AddWinsKind, BagKind, SetKind

SHORT = frozenset(["no lengths"])


def test_every_state_of_four_writes_each_to_a_set():
    search = SetQuotient(4)
    assert len(search.run()) == 35_245
    assert len(SetQuotient(4, looks=False).run()) == 3_185


@pytest.mark.parametrize(("operations", "looks", "states"), [(2, True, 4_417), (3, False, 5_412)])
def test_every_state_of_some_writes_each_to_a_key(operations, looks, states):
    assert len(KeyedQuotient(operations, looks=looks).run()) == states


def test_every_state_of_three_writes_each_to_a_bag():
    assert BagQuotient(3).run() == 254_620
    assert check_tables(3) == 15**3


def test_every_state_of_an_insertion_and_of_two_insertions():
    """One insertion, among four writes each; any two among two writes each."""
    assert len(AddWinsQuotient(4, tracked=1).run()) == 1_325
    assert len(AddWinsQuotient(2, tracked=2).run()) == 4_621


# Every state of the plain search, as the quotient has it, is among those found.


def _states(relation, operations, limit=10**9):
    plain = Explorer(relation, operations=operations, limit=limit)
    plain.run()
    for state in plain.reached:
        yield plain, [[e for e in range(len(plain.owner)) if mask >> e & 1] for mask in state]


def _used(plain, site, seen):
    return sum(plain.owner[e] == site for e in seen)


@pytest.mark.parametrize(("operations", "limit"), [(1, 10**9), (2, 4_000)])
def test_a_set_has_the_states_of_the_plain_search(operations, limit):
    """All of them, and no others where the plain search is complete."""
    wanted = set()
    for plain, seen in _states("R", operations, limit):
        lengths = [max((plain.history.events[e].length for e in s), default=0) for s in seen]
        wanted.add(tuple(sorted((lengths[i], _used(plain, i, s)) for i, s in enumerate(seen))))
    found = {
        tuple(sorted((oracle, used) for (_, oracle), used in sites))
        for sites, _, _ in SetQuotient(operations, looks=False).run()
    }
    assert found == wanted if operations == 1 else found >= wanted


@pytest.mark.parametrize(("operations", "limit"), [(1, 10**9), (2, 4_000)])
def test_a_key_has_the_states_of_the_plain_search(operations, limit):
    search = KeyedQuotient(operations, looks=False)
    found = search.run()
    for plain, seen in _states("K", operations, limit):
        written = sorted({e for s in seen for e in s}, key=lambda e: plain.history.events[e].stamp)
        number = {e: 2 * i + 2 for i, e in enumerate(written)}
        local = {e: (number[e], plain.history.events[e].operation == "insert") for e in written}
        registers = [max((local[e] for e in s), default=None) for s in seen]
        sites = [
            (((r,), r) if r else search.empty, _used(plain, i, s))
            for i, (r, s) in enumerate(zip(registers, seen, strict=True))
        ]
        pool = {((r,), r) for r in local.values()} | {search.empty}
        assert search.normal(sites, search.blank, pool) in found


@pytest.mark.parametrize(("operations", "limit"), [(1, 10**9), (2, 4_000)])
def test_a_bag_has_the_states_of_the_plain_search(operations, limit):
    search = BagQuotient(operations)
    found = set(np.concatenate(list(search.layers())).tolist())
    for plain, seen in _states("B", operations, limit):
        written = sorted({e for s in seen for e in s}, key=lambda e: plain.number[e])
        inserts = {e: plain.history.events[e].operation == "insert" for e in written}
        signs = [[1 if inserts[e] else -1 for e in written if plain.owner[e] == j] for j in range(SITES)]
        known = [[_used(plain, j, s) for j in range(SITES)] for s in seen]
        assert search.number(signs, known) in found


@pytest.mark.parametrize(("operations", "limit"), [(1, 10**9), (2, 4_000)])
def test_an_insertion_has_the_states_of_the_plain_search(operations, limit):
    found = {row[0] for _, rows in AddWinsQuotient(operations, tracked=1).run() for row in rows}
    for plain, seen in _states("W", operations, limit):
        events = plain.history.events
        for e in {e for s in seen for e in s if events[e].operation == "insert"}:
            dead = [any(events[d].operation == "delete" and e in events[d].seen for d in s) for s in seen]
            entries = [
                (1 + gone, 1 + gone) if e in s else UNKNOWN for gone, s in zip(dead, seen, strict=True)
            ]
            if entries != [(2, 2)] * SITES:
                assert any((*order, UNKNOWN) in found for order in itertools.permutations(entries))


# Searches that cannot fail prove nothing.


class LastArrivalWins(SetKind):
    def join(self, a, b):
        return b


class NeverDies(AddWinsKind):
    def delete(self, table, row, pen):
        return {}


class ForgetsDeletes(BagKind):
    def sums(self, table):
        return super().sums({key: row for key, row in table.items() if row.value[1] > 0})


def test_a_wrong_set_is_found():
    search = SetQuotient(2)
    search.kind = search.kinds["R"] = LastArrivalWins()
    with pytest.raises(AssertionError):
        search.run()


def test_a_wrong_bag_is_found():
    with pytest.raises(AssertionError):
        check_tables(2, ForgetsDeletes())


def test_a_wrong_add_wins_is_found():
    with pytest.raises(AssertionError):
        AddWinsQuotient(2, tracked=1, kind=NeverDies()).run()


def test_an_onlooker_without_lengths_is_wrong():
    for search in (SetQuotient(2, shortcuts=SHORT), KeyedQuotient(2, shortcuts=SHORT)):
        with pytest.raises(AssertionError):
            search.run()
    with pytest.raises(AssertionError):
        AddWinsQuotient(2, tracked=1, shortcuts=SHORT).run()
