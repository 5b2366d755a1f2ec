"""Random cases: everything that a seed decides is decided here, before anything happens."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Any

import msgspec

from everview.language.relations import Semantics
from everview.testing.simulation import steps as do
from everview.testing.simulation.programs import (
    LARGE,
    TRANSFERS,
    evolved,
    parsed,
    random_program,
    with_authorities,
    with_owners,
)
from everview.testing.simulation.spread import Spread

FAULTS = (
    "collect",
    "skew",
    "crash",
    "network",
    "folder",
    "partition",
    "restore",
    "rewind",
    "copy",
    "newcomer",
    "leave",
    "expire",
    "absence",
    "rights",
    "storm",
)
"""What may go wrong. In a storm there is one row, much is collected, and batches come late."""

LOSSES = {"restore", "rewind", "copy", "leave", "expire", "absence"}
"""Those by which somebody may be over, in one way or another."""

DAY = 86_400

SKEWS = (0, 0, -30, 30, 45, 300, -300, 3_600, 2 * DAY)
"""How many seconds clocks are ahead."""


def generate_case(seed: int, *, large: bool = False, faults: Collection[str] | None = None) -> do.Case:
    """The case of a seed; `faults` are those that may happen, some of all if none are named."""
    if large:
        return _large_case(seed)
    return _Generator(seed, faults=faults).case()


def evolving_case(seed: int) -> do.Case:
    """The case of a seed in which sites go over to a later program, one by one, amid everything else."""
    rng = random.Random(f"evolve {seed}")
    apart = rng.random() < 0.6  # some host views without their inputs
    case = generate_case(rng.getrandbits(40))
    while case.transfers or "authority" in case.program or (apart and not any(p.hosts for p in case.places)):
        case = generate_case(rng.getrandbits(40))
    steps = list(case.steps)
    for place in case.places:
        if rng.random() < 0.75:
            steps.insert(rng.randint(0, len(steps)), do.Migrate(place.name))
    for step in list(steps):  # what is new is written, too, where it is known
        if isinstance(step, do.Write) and rng.random() < 0.3:
            row = [rng.randrange(3), rng.randrange(2)]
            new = do.Write(step.site, [("delete" if rng.random() < 0.3 else "insert", "z", row)])
            steps.insert(rng.randint(0, len(steps)), new)
    later = evolved(case.program, rng)
    return msgspec.structs.replace(case, seed=seed, steps=steps, later=later)


class _Generator:
    def __init__(self, seed: int, *, faults: Collection[str] | None) -> None:
        self.seed = seed
        self._hosting = random.Random(f"hosts {seed}")
        self.rng = rng = random.Random(f"case {seed}")
        chosen = {fault for fault in FAULTS if rng.random() < (0.6 if fault == "collect" else 0.3)}
        self.faults = chosen if faults is None else set(faults)
        self.storm = "storm" in self.faults
        self.transfers = not self.storm and rng.random() < 0.15
        text = TRANSFERS if self.transfers else random_program(rng, 1 if self.storm else 4)
        if self.transfers:
            self.faults.discard("rights")
        if self.storm:
            self.faults |= {"collect", "folder"}
        # Few rows, so that writes meet; sometimes a single one.
        self.width, self.depth = (1, 1) if self.storm else rng.choice([(1, 1), (2, 1), (2, 2), (3, 2)])
        self.names = [f"s{number}" for number in range(rng.choice([2, 2, 3, 3, 4, 5]))]
        publishing = random.Random(
            f"authorities {seed}"
        )  # a chance of its own: other worlds stay as they were
        if not self.transfers and publishing.random() < 0.25:
            text = with_authorities(text, publishing, self.names)
        owning = random.Random(f"owners {seed}")
        if not self.transfers and not self.storm and owning.random() < 0.25:
            text = with_owners(text, owning)
            # Forgetting them is for the model (`OwnedCopies`): two stores of one name may contradict.
            self.faults -= {"collect", "absence"}
        self.text, self.program = text, parsed(text)
        self.published = sorted(name for name, view in self.program.views.items() if view.authority)
        self.transfer = 0
        self.partial = not self.storm and not self.transfers and self._hosting.random() < 0.35
        if self.partial and any(relation.owner for relation in self.program.relations.values()):
            # Of owners' rows only what they come to may have been told, and then nobody can take it back.
            self.faults -= {"leave", "restore", "rewind", "copy"}
        self.spread: Spread | None = None
        if self.partial and len(self.names) > 2:
            spreading = random.Random(f"spread {seed}")
            if spreading.random() < 0.7:
                lost = not self.faults.isdisjoint(LOSSES)
                self.spread = Spread(self.program, self.names, spreading, lost=lost)

    def case(self) -> do.Case:
        rng = self.rng
        places = [do.Place(name, self.skew(), self.hosts(name)) for name in self.names]
        links = self.topology()
        if self.spread is not None:
            places = [msgspec.structs.replace(p, hosts=self.spread.hosts[p.name]) for p in places]
            links = list(self.spread.links)  # before newcomers
        steps: list[do.AnyStep] = []
        moves = self.moves()
        for _ in range(rng.randint(15, 60) + 40 * self.storm):
            move = rng.choices([m for m, _ in moves], [w for _, w in moves])[0]
            steps += move()
        setting = random.Random(f"clocks {self.seed}")
        if setting.random() < 0.15:
            for _ in range(setting.randint(1, 3)):
                step = do.Set(setting.choice(self.names), setting.choice(SKEWS))
                steps.insert(setting.randint(0, len(steps)), step)
        page_rows = rng.choice([1, 2, 4, 20_000, 20_000, 20_000, 20_000])
        return do.Case(self.seed, self.text, places, links, steps, page_rows, self.transfers)

    def topology(self) -> list[tuple[str, str]]:
        """Star, ring, line, mesh, or a random tree with some more links."""
        names, rng = self.names, self.rng
        line = list(pairwise(names))
        shape = rng.choice(["star", "ring", "line", "mesh", "random"])
        if self.partial:  # who comes back waits for one that it met, be it by chance: they meet again
            shape = "star" if self.faults.isdisjoint(LOSSES) else "mesh"
        match shape:
            case "star":
                return [(names[0], name) for name in names[1:]]
            case "ring":
                return line + ([(names[-1], names[0])] if len(names) > 2 else [])
            case "line":
                return line
            case "mesh":
                return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
            case _:
                tree = [(rng.choice(names[:i]), names[i]) for i in range(1, len(names))]
                return tree + [(a, b) for a, b in line if (a, b) not in tree and rng.random() < 0.3]

    def hosts(self, name: str) -> list[str] | None:
        """Everything; or a view or two, with or without some relations."""
        rng = self._hosting
        if not self.partial or name == self.names[0] or rng.random() < 0.4:
            return None
        views = rng.sample(sorted(self.program.views), min(rng.choice([1, 1, 2]), len(self.program.views)))
        relations = [name for name in sorted(self.program.relations) if rng.random() < 0.25]
        return sorted({*views, *relations})

    def skew(self) -> int:
        if "skew" not in self.faults:
            return 0
        return self.rng.choice(SKEWS)

    def moves(self) -> list[tuple[Callable[[], list[do.AnyStep]], int]]:
        rng = self.rng
        weight = rng.choice([1, 2, 3])
        moves: list[tuple[Callable[[], list[do.AnyStep]], int]] = [
            (self.write, 10),
            (self.sync, 10),
            (lambda: [do.Wait(rng.choice([1, 20, 70, 400]))], 2),
        ]
        optional: dict[str, list[tuple[Callable[[], list[do.AnyStep]], int]]] = {
            "collect": [(lambda: [do.Collect(self.site())], 5)],
            "crash": [(lambda: [do.Crash(self.site())], 1), (self.dying_write, 2), (self.dying_sync, 2)],
            "network": [(lambda: [do.Dial(*self.pair())], 6), (self.deliver, 14)],
            "folder": [(self.publish, 8 if self.storm else 5), (self.find, 8)],
            "partition": [(lambda: [do.Partition(*self.pair())], 2)],
            "restore": [(lambda: [do.Backup(self.site())], 2), (self.restore, weight)],
            "rewind": [(lambda: [do.Backup(self.site())], 2), (self.rewind, weight)],
            "copy": [(self.copy, weight)],
            "newcomer": [(self.arrive, weight)],
            "leave": [(lambda: [do.Leave(self.site())], 1)],
            "expire": [(lambda: [do.Expire(*self.pair())], weight)],
            "absence": [(lambda: [do.Absence(self.site(), rng.choice([40, 100, 100]))], 1)],
            "rights": [(self.permit, 2)],
        }
        for fault in sorted(self.faults):
            moves += optional.get(fault, [])
        return moves

    # Steps.

    def site(self) -> str:
        return self.rng.choice(self.names)

    def pair(self) -> tuple[str, str]:
        one, other = self.rng.sample(self.names, 2)
        return (one, other) if self.spread is None else self.spread.pair(one, other)

    def write(self) -> list[do.AnyStep]:
        return [do.Write(self.site(), self.transaction())]

    def dying_write(self) -> list[do.AnyStep]:
        return [do.Write(self.site(), self.transaction(), self.rng.randint(1, 40))]

    def transaction(self) -> list[Any]:
        rng = self.rng
        if self.transfers:
            self.transfer += 1
            amount = rng.randint(1, 9)
            return [
                ("insert", "debit", [self.transfer, rng.randrange(3), -amount]),
                ("insert", "credit", [self.transfer, rng.randrange(3), amount]),
            ]
        return [self.operation() for _ in range(rng.choice([1, 1, 1, 2, 3]))]

    def operation(self) -> tuple[str, str, list[Any]]:
        rng = self.rng
        name = rng.choice(sorted(self.program.relations))
        relation = self.program.relations[name]
        row: list[Any] = [rng.randrange(self.width), rng.randrange(self.depth)]
        if name == "n":
            row[1] = "ab"[row[1] % 2]
        for place, field in enumerate(relation.schema[:2]):
            if field.nullable and field.name not in relation.key and rng.random() < 0.1:
                row[place] = None
        odds = (
            ["insert", "insert", "delete"]
            if relation.semantics is not Semantics.BAG
            else ["insert", "delete"]
        )
        return rng.choice(odds), name, row

    def sync(self) -> list[do.AnyStep]:
        return [do.Sync(*self.pair())]

    def dying_sync(self) -> list[do.AnyStep]:
        pair = self.pair()
        return [do.Sync(*pair, self.rng.choice(pair), self.rng.randint(1, 120))]

    def deliver(self) -> list[do.AnyStep]:
        rng = self.rng
        fate = rng.choices(["arrives", "doubled", "lost"], [7, 2, 1])[0]
        crash = rng.randint(1, 60) if "crash" in self.faults and rng.random() < 0.1 else 0
        pick = rng.choice([0, 0, rng.randrange(1_000)])
        return [do.Deliver(pick, fate, crash)]  # type: ignore[arg-type]

    def publish(self) -> list[do.AnyStep]:
        kind = self.rng.choice(["whole", "cursor", "cursor", "any"])
        return [do.Publish(self.site(), self.rng.randrange(100), kind)]  # type: ignore[arg-type]

    def find(self) -> list[do.AnyStep]:
        rng = self.rng
        fate = rng.choices(["arrives", "doubled", "lost"], [2, 7, 1])[0]
        crash = rng.randint(1, 60) if "crash" in self.faults and rng.random() < 0.1 else 0
        return [do.Find(self.site(), rng.randrange(1_000), fate, crash)]  # type: ignore[arg-type]

    def restore(self) -> list[do.AnyStep]:
        return [do.Restore(self.site(), self.rng.choice(["in place", "moved"]))]

    def rewind(self) -> list[do.AnyStep]:
        """A store that goes back unnoticed; often it writes before it meets anyone."""
        site = self.site()
        others = [name for name in self.names if name != site]
        before: list[do.AnyStep] = [do.Backup(site), do.Write(site, self.transaction())]
        before += [do.Sync(site, other) for other in others if self.rng.random() < 0.7]
        return [*before, do.Restore(site, "unnoticed"), do.Write(site, self.transaction())]

    def copy(self) -> list[do.AnyStep]:
        site, name = self.site(), f"c{len(self.names)}"
        self.names.append(name)
        return [do.Copy(site, name)]

    def arrive(self) -> list[do.AnyStep]:
        name, near = f"n{len(self.names)}", self.names[0] if self.partial else self.site()
        if self.spread is not None:
            near = self.spread.arrive(name)
        self.names.append(name)
        steps: list[do.AnyStep] = [do.Arrive(name, near, self.skew())]
        if self.rng.random() < 0.5:  # it has written before it meets anyone
            steps.append(do.Write(name, self.transaction()))
        return steps

    def permit(self) -> list[do.AnyStep]:
        rng, names = self.rng, sorted(self.program.names() if self.partial else self.program.relations)
        names = sorted({*names, *self.published})
        reads, writes = ([n for n in names if rng.random() < 0.6] for _ in range(2))
        if rng.random() < 0.4:
            reads = writes = names
        return [do.Permit(*self.pair(), reads, writes)]


def _large_case(seed: int) -> do.Case:
    """No faults, many rows: three sites load them, delete some, and sync."""
    rng = random.Random(f"large {seed}")
    names = ["s0", "s1", "s2"]
    steps: list[do.AnyStep] = []
    start = 0
    for name in names:
        count = rng.randint(34_000, 36_000)
        steps.append(do.Load(name, "s", start, count))
        start += count - 500  # some rows are loaded twice
    steps += [do.Sync("s0", "s1"), do.Sync("s1", "s2"), do.Load("s1", "k", 0, 300)]
    steps += [do.Load("s0", "s", rng.randrange(30_000), 2_000, "delete"), do.Sync("s2", "s0")]
    return do.Case(seed, LARGE, [do.Place(n) for n in names], [("s0", "s1"), ("s1", "s2")], steps, large=True)
