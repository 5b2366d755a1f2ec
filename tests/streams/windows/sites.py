"""The same worlds over real sites: records are rows, places sync, and what a site had outlasts its runner."""

import asyncio
import json
import random

from tests.streams.windows import virtual
from tests.streams.windows.programs import evaluate, handler, random_program

import everview as ev
from everview.streams.windows.board import Board
from everview.streams.windows.coding import CANONICAL
from everview.streams.windows.processor import Processor
from everview.streams.windows.relations import RELATIONS
from everview.streams.windows.runner import Runner
from everview.streams.windows.site_ledger import SiteLedger, known_to
from everview.streams.windows.sources.memory import Listed

PROGRAM = ev.Program.parse(RELATIONS)


class SiteWorld:
    """Sites are opened once and used by many worlds, each a group of its own."""

    def __init__(self, program, chance, name, sites, *, may_lose):
        self.program, self.chance, self.may_lose = program, chance, may_lose
        self.group = program.group(name)
        self.sites = sites
        self.at = {processor: chance.randrange(len(sites)) for processor in program.messages}
        self.running = {}
        self.crashes = self.lost = 0

    async def main(self):
        for place in range(len(self.sites)):
            self.start(place)
        disasters = self.chance.randint(1, 3)
        while not all(task.done() for task in self.running.values()):
            await asyncio.sleep(self.chance.random() / 2)
            if self.chance.random() < 0.7 and len(self.sites) > 1:
                one, other = self.chance.sample(self.sites, 2)
                one.sync(other)
            elif disasters:
                disasters -= 1
                self.crashes += 1
                some = self.chance.sample(sorted(self.running), self.chance.randint(1, len(self.running)))
                for place in some:
                    self.running[place].cancel()
                    await asyncio.wait([self.running[place]])
                if self.may_lose and len(self.sites) > 1 and self.chance.random() < 0.5:
                    self.lost += 1
                    self.sites[some[0]].close()
                    self.sites[some[0]] = ev.Site.open(":memory:", PROGRAM, name=f"new {self.crashes}")
                for place in some:
                    self.start(place)
        for task in self.running.values():
            task.result()
        for _ in range(3):
            for one, other in zip(self.sites, self.sites[1:], strict=False):
                one.sync(other)
        return self

    def start(self, place):
        processors = {
            name: Processor(handler(self.chance, flaky=0.02), Listed(self.program.messages[name]))
            for name, where in self.at.items()
            if where == place
        }
        ledger = SiteLedger(self.sites[place], self.group, threaded=False)
        runner = Runner(
            self.sites[place], self.group, processors, restart_seconds=0.05, attempts=50, ledger=ledger
        )
        self.running[place] = asyncio.create_task(runner.run())


def check_sites(seed, sites=None):
    """Raise unless every site has what the program says, and nothing else."""
    chance = random.Random(f"sites {seed}")
    program = random_program(random.Random(seed), windows=4)
    own = sites is None
    if own:
        sites = [
            ev.Site.open(":memory:", PROGRAM, name=f"s{number}") for number in range(chance.randint(1, 3))
        ]
    world = SiteWorld(program, chance, f"g{seed}", sites, may_lose=own)
    virtual.run(world.main(), chance)
    expected = evaluate(program)
    for site in sites:
        board = Board(world.group)
        board.learn(news := known_to(site, world.group.name))
        for entry in news.entries:
            assert entry == expected.entries[entry.window, entry.processor]
        assert board.is_over
        for window in range(board.floor, board.closed + 1):
            assert CANONICAL.encode(board.value(window)) == expected.values[window]
        rows = [row[1:] for row in site.rows("windowed_outputs") if row[0] == world.group.name]
        wanted = [(o.processor, o.index, o.number, o.value) for o in expected.outputs.values()]
        assert sorted(rows) == sorted(wanted), json.dumps(rows)
    if own:
        for site in sites:
            site.close()
    return world
