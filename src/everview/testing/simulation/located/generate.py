"""Random located cases: everything that a seed decides is decided here, before anything happens."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Any

from everview.located.program import Mode
from everview.testing.simulation import steps as do
from everview.testing.simulation.located.programs import WORKED
from everview.testing.simulation.located.random_rules import random_facts, random_rules
from everview.testing.simulation.located.steps import (
    AnyStep,
    Ask,
    Deafen,
    Forget,
    LocatedCase,
    Open,
    Operation,
    Put,
)

_OFTEN = ("collect", "skew", "crash", "network", "folder", "partition", "restore", "rewind", "deafen")

LOCATED_FAULTS = (*_OFTEN, "absence")
"""What may go wrong in a located world."""

Move = tuple[Callable[[], list[AnyStep]], int]


def generate_located(seed: int, *, faults: Collection[str] | None = None) -> LocatedCase:
    """The located case of a seed: every third runs by counting. `faults` are those that may happen."""
    return _Generator(seed, faults=faults).case()


class _Generator:
    def __init__(self, seed: int, *, faults: Collection[str] | None) -> None:
        self.seed = seed
        self.rng = rng = random.Random(f"located {seed}")
        self.mode: Mode = "counting" if seed % 3 == 2 else "provenance"
        chosen = {fault for fault in _OFTEN if rng.random() < 0.4}
        if random.Random(f"absence {seed}").random() < 0.2:
            chosen.add("absence")
        self.faults = chosen if faults is None else set(faults)
        if self.mode == "counting":
            self.faults -= {"rewind", "absence"}  # nobody promises to go on counting after those
        kinds = [name for name, one in WORKED.items() if one.counts or self.mode == "provenance"]
        self.kind = rng.choice([*kinds, "random", "random"])
        worked = WORKED.get(self.kind)
        few = self.kind == "random" or bool(worked and worked.facts)
        self.names = list("abcd"[: 3 if few else rng.choice([2, 3, 3, 4])])
        self.links = self.topology()
        self.near = bool(worked and worked.near) and rng.random() < 0.5
        if worked is None:
            self.text = random_rules(rng, recursive=self.mode == "provenance")
            self.pool: list[tuple[str, list[Any]]] = [(name, list(row)) for name, row in random_facts(rng)]
        else:
            self.text = worked.text
            self.pool = [(name, list(row)) for name, row in worked.facts]
            self.pool = self.pool or self.some_links(directed=worked.directed)

    def case(self) -> LocatedCase:
        rng = self.rng
        places = [do.Place(name, self.skew()) for name in self.names]
        moves = self.moves()
        steps: list[AnyStep] = []
        for _ in range(rng.randint(15, 45)):
            steps += rng.choices([m for m, _ in moves], [w for _, w in moves])[0]()
        if self.mode == "counting" and "restore" in self.faults and rng.random() < 0.3:
            steps += [do.Restore(self.site())]  # it is refused, and that is the end
        page_rows = rng.choice([1, 2, 4, 20_000, 20_000, 20_000])
        return LocatedCase(
            seed=self.seed,
            program=self.text,
            mode=self.mode,
            places=places,
            links=self.links,
            steps=steps,
            page_rows=page_rows,
            near=self.near,
        )

    def topology(self) -> list[tuple[str, str]]:
        """A ring, a line, a star, or all to all."""
        names = self.names
        line = list(pairwise(names))
        match self.rng.choice(["ring", "line", "star", "mesh"]):
            case "ring":
                return line + ([(names[0], names[-1])] if len(names) > 2 else [])
            case "line":
                return line
            case "star":
                return [(names[0], name) for name in names[1:]]
            case _:
                return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]

    def some_links(self, *, directed: bool) -> list[tuple[str, list[Any]]]:
        """A few links: between any sites, or only between those that talk."""
        names, counting = self.names, self.mode == "counting"
        pairs = self.links if self.near else [(a, b) for a in names for b in names if a < b]
        # Where links go round, derivations of counting mode soon are too many to wait for.
        back = [] if directed or (counting and self.kind == "reachability") else [(b, a) for a, b in pairs]
        found = [*pairs, *back]
        most = 4 if counting else 6
        return [("link", list(pair)) for pair in self.rng.sample(found, min(most, len(found)))]

    def skew(self) -> int:
        return self.rng.choice([0, 0, -30, 45, 3_600]) if "skew" in self.faults else 0

    def moves(self) -> list[Move]:
        rng = self.rng
        moves: list[Move] = [
            (self.put, 10),
            (lambda: [do.Sync(*self.pair())], 10),
            (lambda: [do.Wait(rng.choice([1, 20, 400]))], 1),
        ]
        if self.mode == "counting":
            moves.append((lambda: [Ask(self.site())], 2))
        optional: dict[str, list[Move]] = {
            "collect": [
                (lambda: [do.Collect(self.site())], 3),
                (lambda: [Forget(self.site(), self.crash())], 5),
            ],
            "crash": [(self.dying_put, 3), (self.dying_sync, 4), (self.reopen, 2)],
            "network": [(lambda: [do.Dial(*self.pair())], 6), (self.deliver, 14)],
            "folder": [(self.publish, 4), (self.find, 6)],
            "partition": [(lambda: [do.Partition(*self.pair())], 2)],
            "restore": [(lambda: [do.Backup(self.site())], 2), (self.restore, 2)],
            "rewind": [(self.rewind, 2)],
            "absence": [(lambda: [do.Absence(self.site(), rng.choice([40, 100]))], 1)],
            "deafen": [(lambda: [Deafen(self.site())], 2), (self.reopen, 3)],
        }
        for fault in sorted(self.faults):
            moves += optional.get(fault, [])
        return moves

    # Steps.

    def site(self) -> str:
        return self.rng.choice(self.names)

    def pair(self) -> tuple[str, str]:
        one, other = self.rng.sample(self.names, 2)
        return one, other

    def crash(self) -> int:
        return self.rng.randint(1, 40) if "crash" in self.faults and self.rng.random() < 0.3 else 0

    def put(self, crash: int = 0) -> list[AnyStep]:
        """A transaction over facts of one place."""
        rng = self.rng
        _, (site, *_) = first = rng.choice(self.pool)
        facts = [first, *(rng.choice(self.pool) for _ in range(rng.choice([0, 0, 0, 1, 2])))]
        operations: list[Operation] = [
            (rng.choice(["insert", "insert", "delete"]), relation, row)
            for relation, row in facts
            if row[0] == site
        ]
        return [Put(site, operations, crash)]

    def dying_put(self) -> list[AnyStep]:
        return self.put(self.rng.randint(1, 30))

    def dying_sync(self) -> list[AnyStep]:
        pair = self.pair()
        return [do.Sync(*pair, self.rng.choice(pair), self.rng.randint(1, 60))]

    def reopen(self) -> list[AnyStep]:
        return [Open(self.site(), self.crash())]

    def deliver(self) -> list[AnyStep]:
        rng = self.rng
        fate = rng.choices(["arrives", "doubled", "lost"], [7, 2, 1])[0]
        crash = rng.randint(1, 60) if "crash" in self.faults and rng.random() < 0.1 else 0
        return [do.Deliver(rng.choice([0, 0, rng.randrange(1_000)]), fate, crash)]  # type: ignore[arg-type]

    def publish(self) -> list[AnyStep]:
        kind = self.rng.choice(["whole", "cursor", "cursor", "any"])
        return [do.Publish(self.site(), self.rng.randrange(100), kind)]  # type: ignore[arg-type]

    def find(self) -> list[AnyStep]:
        rng = self.rng
        fate = rng.choices(["arrives", "doubled", "lost"], [2, 7, 1])[0]
        return [do.Find(self.site(), rng.randrange(1_000), fate, self.crash())]  # type: ignore[arg-type]

    def restore(self) -> list[AnyStep]:
        if self.mode == "counting":
            return []
        return [do.Restore(self.site(), self.rng.choice(["in place", "moved"]))]

    def rewind(self) -> list[AnyStep]:
        """A store that goes back unnoticed; often it writes before it meets anyone."""
        site = self.site()
        before: list[AnyStep] = [do.Backup(site), *self.put(), *self.put()]
        before += [do.Sync(site, other) for other in self.names if other != site and self.rng.random() < 0.7]
        return [*before, do.Restore(site, "unnoticed"), *self.put()]
