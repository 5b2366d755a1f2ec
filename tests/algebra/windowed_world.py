"""A world of processors over one windowed CRDT: random programs, schedules, losses and crashes.

A program is a list of messages for each processor. A message awaits a window or not, adds something that
depends on what it awaited, and closes the window or not. Everything that a processor ever showed is kept by
the message that it showed it at, so that a second showing of something else is noticed.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from everview.algebra.lattices import Max, MergeMap
from everview.algebra.windowed import Processor, Windowed
from everview.errors import DataError

COUNTS = MergeMap(Max())
FARTHEST = 3
"""How many windows back a message reads at most."""


def total(state: Mapping[str, int]) -> int:
    return sum(state.values())


@dataclass(frozen=True)
class Message:
    amount: int
    awaits: int | None = None
    """How many windows back."""
    closes: bool = False
    joins: tuple[str, ...] = ()
    leaves: bool = False


Program = Mapping[str, tuple[Message, ...]]


def random_program(chance: random.Random, *, windows: int = 7) -> tuple[frozenset[str], Program]:
    """Who begins, and everybody's messages; late ones join with some window, early ones leave."""
    names = [f"p{number}" for number in range(chance.randint(2, 4))]
    late = {name: chance.randint(1, windows - 1) for name in names[1:] if chance.random() < 0.3}
    early = {
        name: chance.randint(late.get(name, 0), windows - 1) for name in names[1:] if chance.random() < 0.2
    }
    program = {}
    for name in names:
        messages = []
        for window in range(late.get(name, 0), early.get(name, windows - 1) + 1):
            for _ in range(chance.randint(0, 3)):
                back = chance.randint(1, FARTHEST) if chance.random() < 0.4 else None
                messages.append(Message(chance.randint(1, 9), back))
            joining = tuple(other for other, first in late.items() if first == window + 1)
            messages.append(
                Message(
                    chance.randint(1, 9),
                    closes=True,
                    joins=joining if name == names[0] else (),
                    leaves=early.get(name) == window,
                )
            )
        program[name] = tuple(messages)
    return frozenset(name for name in names if name not in late), program


@dataclass
class World:
    members: frozenset[str]
    program: Program
    chance: random.Random
    faults: bool = True
    windowed_type: type[Windowed] = Windowed
    processor_type: type[Processor] = Processor
    shown: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    """Processor and message → what it showed there."""
    values: dict[int, set[int]] = field(default_factory=dict)
    """Window → the values that anybody ever had for it."""

    def __post_init__(self):
        self.windowed = self.windowed_type(COUNTS, self.members)
        self.disk = self.windowed.bottom()
        self.running = {name: self.processor_type(self.windowed, name) for name in sorted(self.members)}
        self.transit = []

    def run(self):
        for _ in range(10_000):
            able = [name for name in sorted(self.running) if self._is_able(name)]
            late = [name for name in sorted(self.program) if name not in self.running]
            joinable = [name for name in late if self._may_begin(name)]
            if not able and not joinable and not self.transit:
                if self._is_done():
                    return self
                for name in sorted(self.running):  # what was lost comes by anti-entropy
                    self.running[name].receive(self.disk)
                if not any(self._is_able(name) for name in self.running) and not self._is_done():
                    raise AssertionError("nobody can go on")
                continue
            choice = self.chance.random()
            if self.faults and choice < 0.06:
                self._crash(
                    self.chance.sample(sorted(self.running), self.chance.randint(1, len(self.running)))
                )
            elif self.faults and choice < 0.1:
                self._collect(self.chance.choice(sorted(self.running)))
            elif self.transit and (not able or choice < 0.5):
                self._deliver()
            elif joinable:
                name = self.chance.choice(joinable)
                self.running[name] = self.processor_type(self.windowed, name, self.disk)
            elif able:
                self._step(self.chance.choice(able))
        raise AssertionError("it goes on for ever")

    def _is_done(self):
        return all(name in self.running and self._message(name) is None for name in self.program)

    def _may_begin(self, name):
        return self.windowed.start(self.disk, name) is not None

    def _message(self, name):
        processor, messages = self.running[name], self.program[name]
        return (
            messages[processor.index] if not processor.has_left and processor.index < len(messages) else None
        )

    def _awaited(self, processor, message):
        if message.awaits is None or processor.window - message.awaits < 0:
            return None
        return processor.window - message.awaits

    def _is_able(self, name):
        message = self._message(name)
        if message is None:
            return False
        window = self._awaited(self.running[name], message)
        return window is None or self.running[name].is_ready(window)

    def _step(self, name):
        processor, message = self.running[name], self._message(name)
        index = processor.consume()
        amount, window = message.amount, self._awaited(processor, message)
        if window is not None:
            value = total(processor.value(window))
            self.values.setdefault(window, set()).add(value)
            self.shown.setdefault((name, index), set()).add(value)
            amount += value % 3
        processor.update({name: processor.local.get(name, 0) + amount})
        if message.closes:
            joins = dict.fromkeys(message.joins, 0)
            told = processor.next_window(joins=joins, leaves=message.leaves)
            self.disk = self.windowed.join(self.disk, told)
            self.transit += [(other, told) for other in self.running if other != name]

    def _deliver(self):
        name, told = self.transit.pop(self.chance.randrange(len(self.transit)))
        fate = self.chance.random() if self.faults else 1
        if fate < 0.15:
            return
        if fate < 0.3:
            self.transit.append((name, told))
        self.running[name].receive(told)

    def _crash(self, names):
        live = [name for name in sorted(self.running) if name not in names]
        for name in names:
            known = self.running[self.chance.choice(live)].progress if live else self.disk
            for progress in (known, self.disk):
                try:
                    self.running[name] = self.processor_type(self.windowed, name, progress)
                    break
                except DataError:  # that peer does not know of it yet, or knows that it has left
                    continue
            else:
                self.running[name].has_left = True

    def _collect(self, name):
        """Forget, at one processor or on the disk, the windows that no message will read any more."""
        if self.chance.random() < 0.3:
            self._note_values()
            self.disk = self.windowed.collect(self.disk, FARTHEST)
        else:
            processor = self.running[name]
            processor.progress = self.windowed.collect(processor.progress, FARTHEST)

    def _note_values(self):
        for window in range(self.disk.floor, self.windowed.closed(self.disk) + 1):
            self.values.setdefault(window, set()).add(total(self.windowed.value(self.disk, window)))

    def outcome(self):
        """Every window's value, by who knows all, and all that was shown."""
        self._note_values()
        return self.values, self.shown


def outcome(seed, *, schedule, faults=True, **types):
    members, program = random_program(random.Random(seed))
    world = World(members, program, random.Random(schedule), faults, **types)
    return world.run().outcome()
