"""Random worlds: every schedule, with crashes at any step, writes the same bytes; each gap is caught."""

import logging
import random
from collections import Counter

import pytest
from tests.streams.windows import world as worlds
from tests.streams.windows.programs import random_program
from tests.streams.windows.world import check

from everview.errors import EverviewError
from everview.streams.windows import processor
from everview.streams.windows.board import Board, Start
from everview.streams.windows.context import Passed
from everview.streams.windows.processor import Processing
from everview.streams.windows.records import Floor, Output


@pytest.fixture(autouse=True)
def _quiet():
    """Thousands of restarts are no news here."""
    logging.getLogger("everview.windowed").setLevel(logging.ERROR)
    yield
    logging.getLogger("everview.windowed").setLevel(logging.NOTSET)


@pytest.mark.parametrize("block", range(10))
def test_windows_and_outputs_do_not_depend_on_the_schedule_nor_on_failures(block):
    for seed in range(block * 30, block * 30 + 30):
        check(seed, schedule=1)


def test_one_program_by_many_schedules_over_any_number_of_places():
    for schedule in range(40):
        check(7, schedule=schedule, places=1 + schedule % 4)


def test_without_faults_too():
    for seed in range(30):
        check(seed, schedule=0, faults=False)


def test_the_worlds_have_what_they_are_about(monkeypatch):
    seen = Counter()
    counted = {
        (worlds.World, "crash"): "crashes",
        (worlds.World, "double"): "doubles",
        (worlds.World, "lose"): "lost places",
    }
    for (owner, name), what in counted.items():
        original = getattr(owner, name)

        def count(self, *args, _original=original, _what=what, **options):
            seen[_what] += 1
            return _original(self, *args, **options)

        monkeypatch.setattr(owner, name, count)
    begin = Processing._begin
    monkeypatch.setattr(Passed, "__init__", lambda self: seen.update(["passed"]))

    def beginning(self, start):
        seen["began anew" if start.state is None else "went on"] += 1
        begin(self, start)

    monkeypatch.setattr(Processing, "_begin", beginning)
    for seed in range(60):
        world = check(seed, schedule=2)
        seen["collected"] += any(place.floor for place in world.places)
    for what in (*counted.values(), "passed", "went on", "collected"):
        assert seen[what] >= 10, (what, seen)
    messages = [
        message
        for seed in range(60)
        for part in random_program(random.Random(seed)).messages.values()
        for message in part
    ]
    assert any(message.joins for message in messages)
    assert any(message.leaves for message in messages)


# The gaps of the paper, and slips that are easily made, put in one by one.


def resumed_in_the_same_window(patch):
    start = Board.start

    def mutant(self, processor):
        found = start(self, processor)
        return (
            found
            if found is None or found.state is None
            else Start(found.window - 1, found.state, found.index)
        )

    patch(Board, "start", mutant)


def only_those_heard_of(patch):
    advance = Board._advance

    def mutant(self):
        members = self._members[self.closed + 1]
        heard = {name for entries in self._entries.values() for name in entries}
        self._members[self.closed + 1] = {
            name: index for name, index in members.items() if name in heard
        } or members
        advance(self)

    patch(Board, "_advance", mutant)


def the_joined_state_restored(patch):
    begin = Processing._begin

    def mutant(self, start):
        begin(self, start)
        if start.window and start.window - 1 <= self._board.closed and start.window - 1 >= self._board.floor:
            self._local = self._board.value(start.window - 1)

    patch(Processing, "_begin", mutant)


def from_the_next_message_on(patch):
    begin = Processing._begin

    def mutant(self, start):
        begin(self, start)
        self.index += start.window > 0

    patch(Processing, "_begin", mutant)


def the_boundary_message_dropped(patch):
    close = Processing._close

    def mutant(self, index, effects, **options):
        close(self, index + (index == self.index and effects.is_own), effects, **options)

    patch(Processing, "_close", mutant)


def what_was_undone_is_kept(patch):
    close = Processing._close

    def mutant(self, index, effects, **options):
        self._local = effects.local
        close(self, index, effects, **options)

    patch(Processing, "_close", mutant)


def outputs_by_their_order_alone(patch):
    def mutant(name, index, number, value):
        return Output(name, index // 2, number, value)

    patch(processor, "Output", mutant)


def outputs_without_their_entry(patch):
    patch(Processing, "_flush", lambda self: self._outputs.clear())


def the_last_one_collected_too(patch):
    def mutant(self):
        window = self.closed + 1
        return Floor(window, frozenset(self._members[window])) if window > self.floor else None

    patch(Board, "next_floor", mutant)


def one_window_too_many_collected(patch):
    def mutant(self):
        window = self.closed + 2 - self.group.keep
        return Floor(window, frozenset(self._members[window])) if window > self.floor else None

    patch(Board, "next_floor", mutant)


def former_selves_not_heeded(patch):
    patch(Processing, "_heed", lambda self, window: None)


def who_joins_begins_at_once(patch):
    start = Processing._start

    async def mutant(self):
        if self._board.start(self.name) is None and not self._board.has_left(self.name):
            return Start(self._board.closed + 1, None, 0)
        return await start(self)

    patch(Processing, "_start", mutant)


def the_end_of_a_source_is_no_leaving(patch):
    close = Processing._close
    patch(Processing, "_close", lambda self, index, effects, leaves=False: close(self, index, effects))


MUTANTS = [
    resumed_in_the_same_window,
    only_those_heard_of,
    the_joined_state_restored,
    from_the_next_message_on,
    the_boundary_message_dropped,
    what_was_undone_is_kept,
    outputs_by_their_order_alone,
    outputs_without_their_entry,
    the_last_one_collected_too,
    one_window_too_many_collected,
    former_selves_not_heeded,
    who_joins_begins_at_once,
    the_end_of_a_source_is_no_leaving,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_each_gap_put_back_is_caught(mutant, monkeypatch):
    mutant(monkeypatch.setattr)
    for seed in range(300):
        try:
            check(seed, schedule=1)
        except (AssertionError, EverviewError, KeyError):
            return
    pytest.fail("no world has noticed")
