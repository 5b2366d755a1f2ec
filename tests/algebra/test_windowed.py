"""Windowed CRDTs: laws, the paper's programs under every schedule, random worlds, and each gap put back."""

import itertools
import random
from types import MappingProxyType

import pytest
from tests.algebra import windowed_world
from tests.algebra.windowed_world import COUNTS, outcome, total

from everview.algebra.lattices import CONFLICT
from everview.algebra.windowed import Closing, Processor, Progress, Start, Windowed
from everview.errors import DataError, NonDeterminismError
from everview.testing import LawViolation, check_lattice

TWO = Windowed(COUNTS, frozenset("ab"))


def closing(state, index=1, **more):
    return Closing(MappingProxyType(state), index, **more)


def samples(windowed=TWO):
    """Of two processors over two windows: in part, in conflict, collected, with a third that joins."""
    singles = [
        windowed.single("a", 0, closing({"a": 1})),
        windowed.single("b", 0, closing({"b": 2}, joins=MappingProxyType({"c": 0}))),
        windowed.single("b", 0, closing({"b": 3})),
        windowed.single("a", 1, closing({"a": 4}, 2)),
        windowed.single("b", 1, closing({"b": 5}, 2, leaves=True)),
        windowed.single("c", 1, closing({"c": 6})),
    ]
    whole = windowed.bottom()
    for single in (singles[0], singles[1], *singles[3:]):
        whole = windowed.join(whole, single)
    return [windowed.bottom(), *singles, whole, windowed.collect(whole, 1)]


def test_progress_is_a_lattice():
    check_lattice(TWO, samples())


def test_what_was_collected_does_not_come_back():
    *_, whole, collected = samples()
    assert collected.floor == 1
    assert TWO.join(collected, whole) == collected
    assert TWO.join(whole, collected) == collected
    assert total(TWO.value(collected, 1)) == total(TWO.value(whole, 1)) == 15
    with pytest.raises(DataError, match="was collected"):
        TWO.value(collected, 0)


def test_the_last_closed_window_is_never_collected():
    *_, whole, _ = samples()
    collected = TWO.collect(whole, 1)
    assert collected.floor == TWO.closed(whole) == 1
    assert TWO.start(collected, "a") == TWO.start(whole, "a") == Start(2, {"a": 4}, 2)
    assert TWO.collect(whole, 2) == whole
    with pytest.raises(DataError, match="at least 1"):
        TWO.collect(whole, 0)


def test_who_began_again_from_too_little_goes_on_after_its_own_entries():
    a, b = Processor(TWO, "a"), Processor(TWO, "b")
    for window in range(3):
        a.consume()
        a.update({"a": window + 1})
        b.receive(a.next_window())
        a.receive(b.next_window())
    a.progress = TWO.collect(a.progress, 1)
    again = Processor(TWO, "a")
    again.receive(a.progress)
    assert (again.window, dict(again.local), again.index) == (3, {"a": 3}, 3)


# The paper's programs.


def interleavings(counts):
    """Every order in which processors can take so many steps each."""
    steps = [name for name, count in counts.items() for _ in range(count)]
    return sorted(set(itertools.permutations(steps)))


def contributions_without_windows():
    """Program A: add, query, print, twice, at two processors; between any two steps they may be joined."""
    printed = {0: set(), 1: set()}
    todo, seen = [((0, 0), (0, 0), (0, 0))], set()
    while todo:
        known, sent, step = todo.pop()
        if (known, sent, step) in seen:
            continue
        seen.add((known, sent, step))
        for who in (0, 1):
            other = 1 - who
            # What is in transit may be delivered: the other's latest addition, or an earlier one.
            for amount in range(known[who] if known[who] > sent[who] else 0, step[other] + 1):
                mine = list(known)
                mine[who] = max(mine[who], min(amount, (step[other] + 1) // 2))
                if tuple(mine) != known:
                    todo.append((tuple(mine), sent, step))
            if step[who] < 4:
                added = (step[who] + 2) // 2
                if step[who] % 2:
                    printed[step[who] // 2].add(100 * added // (added + known[who]))
                after = list(step)
                after[who] += 1
                todo.append((known, sent, tuple(after)))
    return printed


def test_program_a_prints_what_the_schedule_says():
    assert contributions_without_windows() == {0: {33, 50, 100}, 1: {50, 66, 100}}


def test_program_c_prints_50_under_every_schedule():
    """Two windows of one addition each; then window 0 is awaited, then window 1."""
    printed = set()
    for order in interleavings({"a": 2, "b": 2, "to a": 2, "to b": 2}):
        pair = {name: Processor(TWO, name) for name in "ab"}
        mail = {name: [] for name in "ab"}
        for step in order:
            if step in pair:
                pair[step].consume()
                pair[step].update({step: pair[step].local.get(step, 0) + 1})
                mail["b" if step == "a" else "a"].append(pair[step].next_window())
            elif mail[step[-1]]:
                pair[step[-1]].receive(mail[step[-1]].pop())  # the latest first
        for name, processor in pair.items():
            for told in mail[name]:
                processor.receive(told)
            printed |= {100 * (window + 1) // total(processor.value(window)) for window in (0, 1)}
    assert printed == {50}


def test_the_alert_follows_the_last_window():
    """Windows §3.5: 90 is the alert at first; 100 visitors are seen, and it becomes 110 everywhere."""
    servers = Windowed(COUNTS, frozenset({"s1", "s2", "s3"}))
    processors = {name: Processor(servers, name) for name in servers.members}
    told = []
    for name, visitors in {"s1": 50, "s2": 30, "s3": 20}.items():
        processors[name].update({name: visitors})
        told.append(processors[name].next_window())
    for processor in processors.values():
        assert not processor.is_ready(0)
        for one in reversed(told):
            processor.receive(one)
        assert total(processor.value(0)) * 11 // 10 == 110


# Errors instead of waiting for ever.


def test_a_window_that_was_not_reached_cannot_be_awaited():
    processor = Processor(TWO, "a")
    for window in (-1, 0, 5):
        with pytest.raises(DataError, match="cannot await"):
            processor.is_ready(window)
    processor.next_window()
    assert not processor.is_ready(0)
    with pytest.raises(DataError, match="waits for b"):
        processor.value(0)


def test_two_values_for_one_entry_raise_when_they_are_read():
    processor = Processor(TWO, "a")
    processor.next_window()
    processor.receive(TWO.single("b", 0, closing({"b": 1})))
    assert total(processor.value(0)) == 1
    processor.receive(TWO.single("b", 0, closing({"b": 2})))
    assert processor.progress.entries[0, "b"] is CONFLICT
    with pytest.raises(NonDeterminismError, match="window 0 of b"):
        processor.value(0)


def test_who_has_left_does_nothing_more():
    processor = Processor(TWO, "a")
    processor.next_window(leaves=True)
    with pytest.raises(DataError, match="has left"):
        processor.update({"a": 1})
    with pytest.raises(DataError, match="takes part in no window"):
        Processor(TWO, "nobody")


def test_one_that_left_may_join_again_and_begins_anew():
    a, b = Processor(TWO, "a"), Processor(TWO, "b")
    b.update({"b": 7})
    told = [b.next_window(leaves=True), a.next_window(), a.next_window(joins={"b": 3})]
    for one in told:
        a.receive(one)
    again = Processor(TWO, "b", a.progress)
    assert (again.window, dict(again.local), again.index) == (2, {}, 3)


# Random worlds.


@pytest.mark.parametrize("seed", range(25))
def test_windows_do_not_depend_on_the_schedule_nor_on_failures(seed):
    plain = outcome(seed, schedule=0, faults=False)
    for schedule in range(1, 5):
        assert outcome(seed, schedule=schedule) == plain


def test_the_worlds_have_what_they_are_about():
    programs = [windowed_world.random_program(random.Random(seed)) for seed in range(25)]
    messages = [m for _, program in programs for part in program.values() for m in part]
    assert any(m.joins for m in messages)
    assert any(m.leaves for m in messages)
    assert any(len(members) < len(program) for members, program in programs)
    assert sum(len(outcome(seed, schedule=1)[1]) for seed in range(25)) > 50


# The gaps of the paper, put back (NOTES, Windows). Each must be caught by the worlds.


class ResumedInTheSameWindow(Windowed):
    """Gap 1: the window's number is restored as it was, so the closed window is closed again."""

    def start(self, progress, processor):
        start = super().start(progress, processor)
        if start is None:
            return None
        if (start.window - 1, processor) in progress.entries:
            return Start(start.window - 1, start.state, start.index)
        return start


class OnlyThoseHeardOf(Windowed):
    """Gap 2: a window counts as closed when those have closed it that have closed anything."""

    def _walk(self, progress):
        for window in range(progress.floor, max((w for w, _ in progress.entries), default=-1) + 1):
            members = {p: 0 for _, p in progress.entries}
            missing = frozenset(p for p in members if progress.finished.get(p, -1) < window)
            yield window, {p: 0 for p in members if (window, p) in progress.entries}, missing

    def start(self, progress, processor):
        mine = {w: e for (w, p), e in progress.entries.items() if p == processor}
        if not mine:
            return Start(0, self.values.bottom(), 0)
        return Start(max(mine) + 1, mine[max(mine)].state, mine[max(mine)].index)


class TheJoinedStateRestored(Windowed):
    """Gap 3: a failed processor goes on with all that was joined, and closes with others' counts."""

    def start(self, progress, processor):
        start = super().start(progress, processor)
        if start is None:
            return None
        state = start.state
        for entry in progress.entries.values():
            state = self.values.join(state, entry.state)
        return Start(start.window, state, start.index)


class FromTheNextMessageOn(Windowed):
    """Gap 4: the message index is not kept with the window: one message more is taken for done."""

    def start(self, progress, processor):
        start = super().start(progress, processor)
        if start is None:
            return None
        return Start(start.window, start.state, start.index + (start.window > 0))


class FinishedAlone(Windowed):
    """Gap 6: a window counts as closed by F alone, although entries may be on their way."""

    def _walk(self, progress):
        known = {*self.members, *(p for _, p in progress.entries)}
        for window in range(progress.floor, min(progress.finished.get(p, -1) for p in known) + 1):
            yield window, {p: 0 for p in known if (window, p) in progress.entries}, frozenset()

    start = OnlyThoseHeardOf.start


class TheLastOneCollectedToo(Windowed):
    """Gap 8: what is closed is collected, the last one too, from which those go on that fail."""

    def collect(self, progress, keep):
        floor = self.closed(progress) + 1
        members = next((frozenset(m) for w, m, _ in self._walk(progress) if w == floor), None)
        if members is None or floor <= keep:
            return progress
        entries = {place: e for place, e in progress.entries.items() if place[0] >= floor}
        return Progress(floor, members, progress.finished, MappingProxyType(entries))


class JoinsByTheNews(Windowed):
    """Gap 9: whoever is heard of takes part from then on, not from a window that all agree on."""

    def _walk(self, progress):
        members = dict.fromkeys({*self.members, *(p for _, p in progress.entries)}, 0)
        for window in range(progress.floor, 100):
            missing = frozenset(p for p in members if progress.finished.get(p, -1) < window)
            yield window, {p: 0 for p in members if (window, p) in progress.entries}, missing
            if missing:
                return

    start = OnlyThoseHeardOf.start


MUTANTS = [
    ResumedInTheSameWindow,
    OnlyThoseHeardOf,
    TheJoinedStateRestored,
    FromTheNextMessageOn,
    FinishedAlone,
    TheLastOneCollectedToo,
    JoinsByTheNews,
]


def differs(seed, schedule, mutant):
    try:
        return outcome(seed, schedule=schedule, windowed_type=mutant) != outcome(
            seed, schedule=0, faults=False
        )
    except (AssertionError, DataError, NonDeterminismError, KeyError):
        return True


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_each_gap_put_back_is_caught(mutant):
    assert any(differs(seed, schedule, mutant) for seed in range(25) for schedule in range(1, 5))


def test_the_last_writer_of_an_entry_hides_two_values():
    """Gap 7: with entries that are replaced instead of written once, a join forgets one of two values."""

    class Replaced(Windowed):
        def join(self, a, b):
            joined = super().join(a, b)
            return Progress(joined.floor, joined.members, joined.finished, {**a.entries, **b.entries})

    with pytest.raises(LawViolation):
        check_lattice(Replaced(COUNTS, frozenset("ab")), samples())
