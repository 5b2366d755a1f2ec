"""A world of processors at several places: random programs, schedules, losses, crashes and takeovers.

A place keeps records as a site does: what was committed outlasts the runner there, unless the place is lost.
Places exchange all they have at random times. Everything that anybody ever wrote is remembered, so that a
second value for anything is noticed.
"""

import asyncio
import random
from contextlib import suppress

from tests.streams.windows import virtual
from tests.streams.windows.programs import evaluate, handler, random_program

from everview.errors import DataError
from everview.streams.windows.board import Board
from everview.streams.windows.coding import CANONICAL
from everview.streams.windows.processor import Processor
from everview.streams.windows.records import News
from everview.streams.windows.runner import Runner
from everview.streams.windows.sources.memory import Listed

LONGEST = 1_000.0
"""Seconds, of the loop's own, after which a world that still goes on is stuck."""


class Place:
    """Where records are kept."""

    def __init__(self, history):
        self.history = history
        self.forget()
        self.told = []

    def forget(self):
        self.entries, self.outputs, self.floors = {}, {}, {}

    def receive(self, news):
        """Keep records, those of a floor and above it."""
        for entry in news.entries:
            self.history.entry(entry)
        for output in news.outputs:
            self.history.output(output)
        new = [floor for floor in news.floors if floor not in self.floors]
        self.floors |= dict.fromkeys(news.floors)
        floor = self.floor
        fresh = [e for e in news.entries if e not in self.entries and e.window >= floor]
        self.entries |= dict.fromkeys(fresh)
        self.outputs |= dict.fromkeys(news.outputs)
        self.entries = {entry: None for entry in self.entries if entry.window >= floor}
        if fresh or new:
            for tell in self.told:
                tell(News(tuple(fresh), (), tuple(new)))

    @property
    def floor(self):
        return max((floor.window for floor in self.floors), default=0)

    def all(self):
        return News(tuple(self.entries), tuple(self.outputs), tuple(self.floors))


class PlaceLedger:
    """A ledger at a place; a commit takes a while, and what was not committed dies with the ledger."""

    def __init__(self, place, chance):
        self.place, self.chance = place, chance
        self.pending, self.is_writing = [], False
        self.news, self.kept = asyncio.Event(), asyncio.Event()
        self.tell = None

    def open(self, tell):
        self.tell = tell
        tell(self.place.all())
        self.place.told.append(tell)

    def write(self, news):
        self.pending.append(news)
        self.news.set()

    async def room(self):
        pass

    async def settle(self):
        while self.pending or self.is_writing:
            self.kept.clear()
            await self.kept.wait()

    async def run(self):
        while True:
            await self.news.wait()
            self.news.clear()
            batch, self.pending, self.is_writing = self.pending, [], True
            if self.chance.random() < 0.5:
                await asyncio.sleep(self.chance.random() / 5)
            self.place.receive(
                News(*(tuple(x for n in batch for x in part(n)) for part in (_entries, _outputs, _floors)))
            )
            self.is_writing = False
            self.kept.set()

    def close(self):
        if self.tell in self.place.told:
            self.place.told.remove(self.tell)


def _entries(news):
    return news.entries


def _outputs(news):
    return news.outputs


def _floors(news):
    return news.floors


class History:
    """All that was ever written, by its place; and all values that windows were ever read with."""

    def __init__(self):
        self.entries, self.outputs = {}, {}

    def entry(self, entry):
        self.entries.setdefault((entry.window, entry.processor), set()).add(entry)

    def output(self, output):
        self.outputs.setdefault((output.processor, output.index, output.number), set()).add(output)


class World:
    def __init__(self, program, chance, *, faults=True, places=None):
        self.program, self.chance, self.faults = program, chance, faults
        self.group = program.group()
        self.history = History()
        count = places or chance.randint(1, 3)
        self.places = [Place(self.history) for _ in range(count)]
        self.at = {name: chance.randrange(count) for name in program.messages}
        self.running = {}
        self.done = set()
        self.crashes = 0

    async def main(self):
        for place in range(len(self.places)):
            self.start(place)
        disaster = asyncio.create_task(self.disasters()) if self.faults else None
        while len(self.done) < len(self.places):
            await asyncio.sleep(self.chance.random() / 5)
            self.exchange()
            if asyncio.get_running_loop().time() > LONGEST:
                raise AssertionError("it goes on for ever")
            for place, (task, _) in list(self.running.items()):
                if task.done():
                    task.result()
                    self.done.add(place)
        if disaster is not None:
            disaster.cancel()
        return self

    def start(self, place):
        chance = self.chance if self.faults else None
        flaky = 0.02 if self.faults else 0
        processors = {
            name: Processor(handler(chance, flaky=flaky), Listed(self.program.messages[name]))
            for name, where in self.at.items()
            if where == place
        }
        ledger = PlaceLedger(self.places[place], self.chance)
        runner = Runner(None, self.group, processors, restart_seconds=0.05, attempts=50, ledger=ledger)
        self.running[place] = (asyncio.create_task(runner.run()), runner)
        self.done.discard(place)

    def exchange(self):
        if len(self.places) == 1:
            return
        giver, taker = self.chance.sample(self.places, 2)
        if self.faults and self.chance.random() < 0.2:
            return  # lost
        news = giver.all()
        taker.receive(news)
        if self.faults and self.chance.random() < 0.2:
            taker.receive(news)

    async def disasters(self):
        for _ in range(self.chance.randint(1, 6)):
            await asyncio.sleep(self.chance.random() * self.chance.choice([0.05, 0.2, 1.0]))
            self.crashes += 1
            places = range(len(self.places))
            match self.chance.randrange(5):
                case 0:
                    name = self.chance.choice(sorted(self.at))
                    self.running[self.at[name]][1].restart(name)
                case 1:
                    await self.crash([self.chance.choice(places)])
                case 2:
                    await self.crash(places)
                case 3:
                    await self.lose(self.chance.choice(places))
                case 4:
                    self.double()

    async def crash(self, places, *, restart=True):
        for place in places:
            task, _ = self.running[place]
            task.cancel()
            await asyncio.wait([task])
        for place in places if restart else ():
            self.start(place)

    async def lose(self, place):
        """The disk is lost as well; peers may have all that was on it, some, or nothing."""
        await self.crash([place], restart=False)
        self.places[place].forget()
        self.start(place)

    def double(self):
        """A processor is taken over although it is alive: now it runs twice."""
        name, place = self.chance.choice(sorted(self.at)), self.chance.randrange(len(self.places))
        task, runner = self.running[place]
        if self.at[name] != place and not task.done():
            with suppress(DataError):  # its last processor is just leaving
                runner.adopt(name, Processor(handler(self.chance), Listed(self.program.messages[name])))


def play(seed, *, schedule, faults=True, places=None):
    """Run a program by a schedule; everything that was ever written."""
    program = random_program(random.Random(seed))
    chance = random.Random(f"{seed}/{schedule}")
    world = World(program, chance, faults=faults, places=places)
    return virtual.run(world.main(), chance)


def check(seed, schedule, **options):
    """Raise unless all that was ever written is what the program says, and nothing is missing."""
    world = play(seed, schedule=schedule, **options)
    expected = evaluate(world.program)
    assert world.history.entries == {at: {entry} for at, entry in expected.entries.items()}
    assert world.history.outputs == {at: {output} for at, output in expected.outputs.items()}
    read = 0
    for place in world.places:
        board = Board(world.group)
        board.learn(place.all())
        for window in range(board.floor, board.closed + 1):
            assert CANONICAL.encode(board.value(window)) == expected.values[window]
            read += 1
    assert read
    return world
