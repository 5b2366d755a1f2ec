"""The board says what the lattice says of the same entries, after every step, in any order of arrival."""

import random
from types import MappingProxyType

import pytest
from tests.streams.windows.programs import COUNTS, evaluate, random_program

from everview.algebra.windowed import Closing, Windowed
from everview.errors import DataError, NonDeterminismError
from everview.streams.windows.board import Board
from everview.streams.windows.coding import CANONICAL
from everview.streams.windows.records import Entry, Floor, News


def closing(entry):
    return Closing(
        CANONICAL.decode(entry.state), entry.index, MappingProxyType(dict(entry.joins)), entry.leaves
    )


def outcome(read):
    try:
        return read()
    except DataError as error:
        return str(error)


def compare(board, lattice, progress, names):
    assert board.floor == progress.floor
    assert board.closed == lattice.closed(progress)
    for window in range(-1, 9):
        if board.closed >= window:
            assert outcome(lambda w=window: dict(board.value(w))) == outcome(
                lambda w=window: dict(lattice.value(progress, w))
            )
        assert board.awaited(window) == lattice.awaited(progress, max(window, progress.floor)) or window < 0
    for name in names:
        mine, theirs = board.start(name), lattice.start(progress, name)
        if theirs is None or mine is None:
            assert mine is theirs
        else:
            state = COUNTS.bottom() if mine.state is None else CANONICAL.decode(mine.state)
            assert (mine.window, state, mine.index) == (theirs.window, theirs.state, theirs.index)


@pytest.mark.parametrize("block", range(4))
def test_entries_in_any_order_with_floors_in_between(block):
    for seed in range(block * 25, block * 25 + 25):
        chance = random.Random(seed)
        program = random_program(chance)
        board, lattice = Board(program.group()), Windowed(COUNTS, program.members)
        progress = lattice.bottom()
        whole = lattice.bottom()
        entries = list(evaluate(program).entries.values())
        for entry in entries:
            whole = lattice.join(whole, lattice.single(entry.processor, entry.window, closing(entry)))
        some = chance.sample(entries, len(entries)) + chance.choices(entries, k=5)
        for entry in some:
            if chance.random() < 0.15:  # somebody else has collected, and tells of all that it kept
                progress = lattice.join(progress, collected := lattice.collect(whole, chance.randint(1, 3)))
                kept = tuple(e for e in entries if e.window >= collected.floor)
                floors = (Floor(collected.floor, collected.members),) if collected.floor else ()
                board.learn(News(kept, (), floors))
            progress = lattice.join(progress, lattice.single(entry.processor, entry.window, closing(entry)))
            board.learn(News((entry,)))
            compare(board, lattice, progress, program.messages)


def entry(window, name, state, **more):
    return Entry(window, name, window + 1, CANONICAL.encode({name: state}), **more)


def test_two_values_are_told_from_the_window_on_that_has_them():
    board = Board(random_program(random.Random(0)).group())
    names = sorted(board.group.members)
    board.learn(News(tuple(entry(w, n, w) for w in range(3) for n in names)))
    assert board.closed == 2
    board.learn(News((entry(1, names[0], 77),)))
    assert board.value(0) == dict.fromkeys(names, 0)
    for window in (1, 2):
        with pytest.raises(NonDeterminismError, match=f"window 1 of {names[0]}"):
            board.value(window)
    with pytest.raises(NonDeterminismError):
        board.start(names[0])
    assert board.next_floor() is None
    board.learn(News(floors=(Floor(2, frozenset(names)),)))
    assert board.value(2) == dict.fromkeys(names, 2)


def test_a_floor_that_disagrees_about_its_members_is_no_floor_to_read_from():
    board = Board(random_program(random.Random(0)).group())
    names = sorted(board.group.members)
    board.learn(News(tuple(entry(w, n, w) for w in range(3) for n in names)))
    board.learn(News(floors=(Floor(2, frozenset({"somebody"})),)))
    with pytest.raises(NonDeterminismError, match="who takes part in window 2"):
        board.value(2)


def test_a_floor_tells_everybody_that_is_behind_it():
    """Of one that has left there are no entries above it: nothing else would tell it."""
    board, heard = Board(random_program(random.Random(0)).group()), []
    board.listen("somebody", heard.append)
    board.learn(News(floors=(Floor(4, frozenset({"another"})),)))
    assert heard == [3]


def test_a_floor_without_the_entries_above_it_lets_nobody_begin():
    board = Board(random_program(random.Random(0)).group())
    names = sorted(board.group.members)
    board.learn(News(floors=(Floor(4, frozenset(names)),)))
    assert [board.start(name) for name in names] == [None] * len(names)
    board.learn(News(tuple(entry(4, n, 4) for n in names)))
    assert [board.start(name).window for name in names] == [5] * len(names)
