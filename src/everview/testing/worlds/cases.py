"""Random cases: everything that a seed decides is decided here, before anything happens."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, get_args

from everview.language.relations import Semantics
from everview.testing.worlds import steps as do
from everview.testing.worlds.programs import (
    LARGE,
    TRANSFERS,
    inputs_of,
    parsed,
    random_program,
    with_authorities,
    with_partitions,
)

FAULTS = (
    "forget",
    "skew",
    "crash",
    "network",
    "folder",
    "cut",
    "partition",
    "restore",
    "rewind",
    "copy",
    "newcomer",
    "leave",
    "rights",
    "ageing",
)
"""What may go wrong."""

KINDS = ("", "liar", "wild", "large")
"""Kinds of worlds: with faults; with a liar; with stores that go back and meet anybody; with many rows."""

DAY = 86_400

YEAR = 365 * DAY

SKEWS = (0, 0, -30, 30, 300, -3_600, 2 * 86_400, -YEAR, 20 * YEAR, -70 * YEAR, 80 * YEAR)
"""How many seconds clocks are ahead."""

Move = Callable[[], list[do.AnyStep]]


def random_case(seed: int, kind: str = "") -> do.Case:
    """The case of a seed."""
    return _large(seed) if kind == "large" else _Generator(seed, kind).case()


class _Generator:
    def __init__(self, seed: int, kind: str) -> None:
        self.seed, self.kind = seed, kind
        self.rng = rng = random.Random(f"{kind} {seed}")
        self.halving = random.Random(f"halves {kind} {seed}")
        self.faults = {fault for fault in FAULTS if rng.random() < 0.35}
        self.transfers = not kind and rng.random() < 0.12
        self.text = TRANSFERS if self.transfers else random_program(rng)
        self.program = parsed(self.text)
        self.relations = sorted(self.program.relations)
        self.transfer = 0
        # Few rows, so that writes meet; sometimes a single one.
        self.width, self.depth = rng.choice([(1, 1), (2, 1), (2, 2), (3, 2)])
        self.names = [f"s{number}" for number in range(rng.choice([2, 2, 3, 3, 4, 5]))]
        self.parts = rng.random() < 0.3
        publishing = random.Random(f"authorities {kind} {seed}")
        if not self.transfers and publishing.random() < 0.2:
            self.text = with_authorities(self.text, publishing, self.names)
            self.program = parsed(self.text)
        splitting = random.Random(f"partitions {kind} {seed}")
        if not self.transfers and splitting.random() < 0.4:
            self.text = with_partitions(self.text, splitting)
            self.program = parsed(self.text)
        self.split = [name for name, one in self.program.relations.items() if one.partitioned]
        self.parts = self.parts or (bool(self.split) and splitting.random() < 0.6)
        self.grants: list[str] = []
        if kind == "wild":
            self.faults |= {"rewind"}
        if kind == "liar":
            self.faults -= {"rewind"}
            grants = rng.random() < 0.6
            self.grants = [name for name in self.relations if grants and rng.random() < 0.5]
            self.grants = [
                f"{name} [{splitting.randrange(2)}]"
                if name in self.split and splitting.random() < 0.6
                else name
                for name in self.grants
            ]
        if self.transfers or kind == "liar":
            self.faults.discard("rights")

    def case(self) -> do.Case:
        rng = self.rng
        places = [do.Place(name, self.skew(), self.hosts(name)) for name in self.names]
        moves = self.moves()
        steps: list[do.AnyStep] = []
        for _ in range(rng.randint(15, 60)):
            move = rng.choices([m for m, _ in moves], [w for _, w in moves])[0]
            steps += move()
        liar = "liar" if self.kind == "liar" else ""
        if liar:
            places.append(do.Place(liar))
        return do.Case(
            self.seed,
            self.text,
            places,
            steps,
            rng.choice(["line", "star", "mesh"]),
            rng.choice([1, 8, 30, 1_000_000, 1_000_000]),
            self.transfers,
            liar=liar,
            grants=self.grants,
            wild=self.kind == "wild",
        )

    def hosts(self, name: str) -> list[str] | None:
        if not self.parts or name == self.names[0] or self.rng.random() < 0.4:
            return None
        if self.transfers:  # whoever hosts half of a transfer sees half of it
            return sorted(self.program.views)
        views = self.rng.sample(sorted(self.program.views), self.rng.choice([0, 1, 1, 2]))
        relations = {one for one in self.relations if self.rng.random() < (0.8 if one in self.split else 0.3)}
        for made in (inputs_of(self.program, view) for view in views):
            relations |= made if made.intersection(self.split) else set()  # it is over what is hosted
        named = [self.values(one) if one in self.split else one for one in sorted(relations)]
        return sorted({*views, *named}) or [self.relations[0]]

    def values(self, relation: str) -> str:
        """A partitioned relation, or some of its values."""
        if self.rng.random() < 0.3:
            return relation
        return f"{relation}/a={','.join(map(str, self.rng.sample(range(3), self.rng.choice([1, 1, 2]))))}"

    def skew(self) -> int:
        return self.rng.choice(SKEWS) if "skew" in self.faults else 0

    def moves(self) -> list[tuple[Move, int]]:
        rng = self.rng
        weight = rng.choice([1, 2, 3])
        moves: list[tuple[Move, int]] = [
            (self.write, 10),
            (lambda: [do.Sync(*self.pair())], 8),
            (lambda: [do.Wait(rng.choice([1, 20, 400]))], 1),
        ]
        optional: dict[str, list[tuple[Move, int]]] = {
            "forget": [(lambda: [do.Forget(self.site(), rng.choice([0, 0, 1, 3]))], 3)],
            "skew": [(lambda: [do.Set(self.site(), self.skew())], 1)],
            "crash": [(lambda: [do.Crash(self.site())], 1), (self.dying_write, 2), (self.dying_sync, 2)],
            "network": [(lambda: [do.Dial(*self.pair())], 6), (self.deliver, 18), (self.slow, 2)],
            "folder": [(self.visit, 8), (lambda: [do.Lose(rng.randrange(100), self.loss())], 2)],
            "cut": [(lambda: [do.Sync(*self.pair(), messages=rng.randint(1, 8))], 4)],
            "partition": [(lambda: [do.Partition(*self.pair())], 2)],
            "restore": [(lambda: [do.Backup(self.site())], 2), (self.restore, weight)],
            "rewind": [(lambda: [do.Backup(self.site())], 2), (self.rewind, weight)],
            "copy": [(self.copy, weight)],
            "newcomer": [(self.arrive, weight)],
            "leave": [(lambda: [do.Leave(self.site())], 1)],
            "rights": [(self.permit, 2)],
            "ageing": [(lambda: [do.Wait(DAY * rng.choice([10, 50, 100, 200]))], 4)],
        }
        for fault in sorted(self.faults):
            moves += optional[fault]
        if self.parts and not self.transfers:
            moves.append((self.host, 2))
        if not self.kind:
            moves.append((lambda: [do.Repair(*self.pair(), rng.choice(self.relations))], 1))
        if self.split and self.parts:
            moves += [(lambda: [do.Choose(*self.value())], 2), (lambda: [do.Drop(*self.value())], 2)]
        if self.kind == "liar":
            moves.append((lambda: [do.Lie(self.site(), rng.getrandbits(30))], 12))
            if self.grants:
                moves.append((lambda: [do.Write("liar", [self.operation() for _ in range(2)])], 2))
        return moves

    # Steps.

    def site(self) -> str:
        return self.rng.choice(self.names)

    def pair(self) -> tuple[str, str]:
        one, other = self.rng.sample(self.names, 2)
        return one, other

    def value(self) -> tuple[str, str, int]:
        return self.site(), self.rng.choice(self.split), self.rng.randrange(3)

    def write(self) -> list[do.AnyStep]:
        return [do.Write(self.site(), self.transaction())]

    def dying_write(self) -> list[do.AnyStep]:
        return [do.Write(self.site(), self.transaction(), self.rng.randint(1, 40))]

    def transaction(self) -> list[do.Operation]:
        rng = self.rng
        if self.transfers:
            self.transfer += 1
            amount = rng.randint(1, 9)
            return [
                ("insert", "debit", [self.transfer, rng.randrange(3), -amount]),
                ("insert", "credit", [self.transfer, rng.randrange(3), amount]),
            ]
        return [self.operation() for _ in range(rng.choice([1, 1, 1, 2, 3, 5]))]

    def operation(self) -> do.Operation:
        rng = self.rng
        name = rng.choice(self.relations)
        relation = self.program.relations[name]
        row: list[Any] = [rng.randrange(self.width), rng.randrange(self.depth)]
        if name == "n":
            row[1] = "ab"[row[1] % 2]
        if name == "c":
            row.append(rng.randrange(3))
        if relation.owner:
            row.append(None)  # whoever writes it
        for place, field in enumerate(relation.schema[:2]):
            if field.nullable and field.name not in relation.key and rng.random() < 0.1:
                row[place] = None
        few = relation.semantics is not Semantics.BAG
        return rng.choice(["insert", "insert", "delete"] if few else ["insert", "delete"]), name, row

    def dying_sync(self) -> list[do.AnyStep]:
        pair = self.pair()
        return [do.Sync(*pair, victim=self.rng.choice(pair), crash=self.rng.randint(1, 150))]

    def deliver(self) -> list[do.AnyStep]:
        rng = self.rng
        fate: do.Fate = rng.choices(["arrives", "doubled", "lost"], [7, 2, 1])[0]  # type: ignore[assignment]
        crash = rng.randint(1, 60) if "crash" in self.faults and rng.random() < 0.1 else 0
        return [do.Deliver(rng.choice([0, 0, rng.randrange(1_000)]), fate, crash)]

    def slow(self) -> list[do.AnyStep]:
        """An exchange in which both sides write meanwhile."""
        pair = self.pair()
        steps: list[do.AnyStep] = [do.Dial(*pair)]
        for _ in range(self.rng.randint(3, 7)):
            steps.append(do.Deliver(-1))
            if self.rng.random() < 0.6:
                steps.append(do.Write(self.rng.choice(pair), self.transaction()))
        return steps

    def visit(self) -> list[do.AnyStep]:
        dies = "crash" in self.faults and self.rng.random() < 0.2
        return [do.Visit(self.site(), self.rng.randint(1, 150) if dies else 0)]

    def loss(self) -> do.Loss:
        return self.rng.choice(get_args(do.Loss))

    def restore(self) -> list[do.AnyStep]:
        return [do.Restore(self.site(), self.rng.choice(["in place", "moved"]))]

    def rewind(self) -> list[do.AnyStep]:
        """A store that goes back unnoticed; often it writes before it meets anyone."""
        site = self.site()
        others = [name for name in self.names if name != site]
        steps: list[do.AnyStep] = [do.Backup(site), do.Write(site, self.transaction())]
        steps += [do.Sync(site, other) for other in others if self.rng.random() < 0.7]
        steps += [do.Restore(site, "unnoticed"), do.Write(site, self.transaction())]
        return steps

    def copy(self) -> list[do.AnyStep]:
        site, name = self.site(), f"c{len(self.names)}"
        self.names.append(name)
        return [do.Copy(site, name)]

    def arrive(self) -> list[do.AnyStep]:
        name = f"n{len(self.names)}"
        self.names.append(name)
        steps: list[do.AnyStep] = [do.Arrive(name, self.skew())]
        if self.rng.random() < 0.5:  # it has written before it meets anyone
            steps.append(do.Write(name, self.transaction()))
        return steps

    def host(self) -> list[do.AnyStep]:
        made = {view: inputs_of(self.program, view) for view in sorted(self.program.views)}
        views = [view for view, inputs in made.items() if inputs.isdisjoint(self.split)]
        every = [*self.relations, *views]
        return [do.Host(self.site(), self.rng.sample(every, min(self.rng.choice([1, 1, 2]), len(every))))]

    def permit(self) -> list[do.AnyStep]:
        rng = self.rng
        reads, writes = ([n for n in self.relations if rng.random() < 0.6] for _ in range(2))
        halves: list[list[str]] = [[], []]  # of a relation that has an owner its own rules say enough
        for name in self.relations if self.halving.random() < 0.5 else ():
            if name not in writes and self.program.relations[name].owner is None:
                halves[self.halving.randrange(2)].append(name)
        site, peer = self.pair()
        steps: list[do.AnyStep] = [do.Permit(site, peer, reads, writes, *halves)]
        if not any(halves):
            return steps
        return [*steps, do.Write(peer, self.transaction()), do.Sync(peer, site)]


def _large(seed: int) -> do.Case:
    """Many rows: three sites load them, delete some, and meet, now and then cut off or dying."""
    rng = random.Random(f"large {seed}")
    names = ["s0", "s1", "s2"]
    steps: list[do.AnyStep] = []
    start = 0
    for name in names:
        count = rng.randint(4_000, 36_000)
        steps += [do.Load(name, "insert", relation, start, count) for relation in "sg"]
        start += count - 500  # some rows are loaded twice
    steps += [do.Sync("s0", "s1"), do.Sync("s1", "s2", 0, rng.choice(["s1", "s2"]), rng.randint(1, 300))]
    steps += [do.Load("s1", "insert", "k", 0, 300), do.Sync("s1", "s2", rng.randint(2, 6))]
    for relation in "sgk":
        steps.append(do.Load(rng.choice(names), "delete", relation, rng.randrange(3_000), 2_000))
    steps += [do.Forget(rng.choice(names), rng.choice([0, 500])), do.Sync("s2", "s0"), do.Sync("s0", "s1")]
    places = [do.Place(name) for name in names]
    return do.Case(seed, LARGE, places, steps, page_cells=rng.choice([5_000, 60_000, 1_000_000]), large=True)
