"""Why rows go from a narrower relation to a wider one, and not back: a model of the four kinds.

A state is a lattice table, its join row by row, and its rows those that the valuation shows. Widening maps
every row to itself with NULL at its end. It commutes with joins and with the valuation, for all small states:
so it does not matter where on its way a row is widened, and sites of both versions come to the same. Cutting
the column off commutes with neither.
"""

import itertools

import pytest

from everview.language.identity import tuple_id
from everview.language.relations import Relation
from everview.language.types import BIGINT, TEXT, Field

NARROW = ((1, "x"), (1, "y"), (2, "x"))
WIDE = tuple((*row, more) for row in NARROW[:2] for more in (None, 5))


def greatest(one, other):
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in one.keys() | other.keys()}


def latest(one, other):
    return {
        key: max((state[key] for state in (one, other) if key in state), key=lambda found: found[0])
        for key in one.keys() | other.keys()
    }


class Set:
    """Row → causal length."""

    join = staticmethod(greatest)

    @staticmethod
    def states(rows):
        for lengths in itertools.product(range(4), repeat=2):
            for pair in itertools.combinations(rows, 2):
                yield {row: length for row, length in zip(pair, lengths, strict=True) if length}

    @staticmethod
    def shown(state):
        return sorted((row for row, length in state.items() if length % 2), key=repr)

    @staticmethod
    def mapped(state, change):
        found = {}
        for row, length in state.items():
            found[change(row)] = max(found.get(change(row), 0), length)
        return found


class Keyed:
    """Key → (stamp, row or None)."""

    join = staticmethod(latest)

    @staticmethod
    def states(rows):
        for place, row in enumerate(rows):
            yield {row[0]: (place + 1, row)}
            yield {row[0]: (place + 4, None)}
        yield {}

    @staticmethod
    def shown(state):
        return sorted((row for _, row in state.values() if row is not None), key=repr)

    @staticmethod
    def mapped(state, change):
        return {key: (stamp, None if row is None else change(row)) for key, (stamp, row) in state.items()}


class Bag:
    """(dot, row) → weight, written once."""

    @staticmethod
    def join(one, other):
        return {**one, **other}

    @staticmethod
    def states(rows):
        dots = [((place, row), weight) for place, row in enumerate(rows) for weight in (1, -1)]
        for size in range(3):
            for chosen in itertools.combinations(dots, size):
                if len({key for key, _ in chosen}) == size:
                    yield dict(chosen)

    @staticmethod
    def shown(state):
        sums = {}
        for (_, row), weight in state.items():
            sums[row] = sums.get(row, 0) + weight
        return sorted((row for row, weight in sums.items() for _ in range(weight)), key=repr)

    @staticmethod
    def mapped(state, change):
        return {(dot, change(row)): weight for (dot, row), weight in state.items()}


class AddWins:
    """(insertion, row) → 1, or 2 when it was deleted."""

    join = staticmethod(greatest)

    @staticmethod
    def states(rows):
        for lengths in itertools.product(range(3), repeat=2):
            for pair in itertools.combinations(enumerate(rows), 2):
                yield {key: length for key, length in zip(pair, lengths, strict=True) if length}

    @staticmethod
    def shown(state):
        return sorted({row for (_, row), length in state.items() if length == 1}, key=repr)

    @staticmethod
    def mapped(state, change):
        return {(insertion, change(row)): length for (insertion, row), length in state.items()}


def widen(row):
    return (*row, None)


def cut(row):
    return row[:-1]


def widened(shown):
    return sorted(map(widen, shown), key=repr)


@pytest.mark.parametrize("kind", [Set, Keyed, Bag, AddWins])
def test_widening_commutes_with_joins_and_with_what_is_shown(kind):
    states = list(kind.states(NARROW))
    assert len({repr(sorted(map(repr, state.items()))) for state in states}) > 5
    for one, other in itertools.product(states, repeat=2):
        joined = kind.mapped(kind.join(one, other), widen)
        assert joined == kind.join(kind.mapped(one, widen), kind.mapped(other, widen))
        assert kind.shown(joined) == widened(kind.shown(kind.join(one, other)))
        assert (kind.mapped(one, widen) == kind.mapped(other, widen)) == (one == other)


def test_cutting_off_does_not():
    """Of two wide rows that are one when cut, one is deleted: a narrow site would delete both."""
    state = {(1, "x", None): 2, (1, "x", 5): 1}
    assert Set.shown(state) == [(1, "x", 5)]
    assert Set.shown(Set.mapped(state, cut)) == []
    wrong = [
        state
        for state in Set.states(WIDE)
        if Set.shown(Set.mapped(state, cut)) != sorted(set(map(cut, Set.shown(state))), key=repr)
    ]
    assert wrong


def test_a_widened_row_has_the_id_it_had():
    fields = (Field("a", BIGINT, nullable=False), Field("b", TEXT))
    narrow, wide = Relation("r", fields), Relation("r", (*fields, Field("c", BIGINT)))
    ids = {tuple_id(wide, widen(row)) for row in NARROW}
    assert ids == {tuple_id(narrow, row) for row in NARROW}
    assert len(ids) == 3
    assert tuple_id(wide, (1, "x", 5)) not in ids
