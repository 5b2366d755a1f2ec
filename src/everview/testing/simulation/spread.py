"""Spread: worlds in which sites host different parts, and not all are linked with one that has everything.

So some views get somewhere only over sites that host the same view, or hold what it is made from, and some to
nobody. The sites that host a relation are linked with each other over such sites: where they write it and
never meet there are two worlds. Where stores may be lost, so are those that have it unseen: who comes back
waits for one that held the relation with it, be it one that it met by chance and never meets again. It has a
chance of its own: other worlds stay as they were.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from itertools import pairwise

from everview.language.program import Program
from everview.planner.exchange import Exchange

SHAPES = ("line", "line", "line", "tree", "tree", "ring", "mesh")


class Spread:
    """What sites host, and with whom they are linked; the first hosts everything."""

    def __init__(self, program: Program, names: Sequence[str], rng: random.Random, *, lost: bool) -> None:
        self._program, self._rng = program, rng
        common = rng.choice(sorted(program.views))
        self.hosts: dict[str, list[str] | None] = {
            name: self._hosts(common) if number else None for number, name in enumerate(names)
        }
        self.links = _shape(rng.choice(SHAPES), rng.sample(names, len(names)), rng)
        for holders in self._holders(unseen=lost):
            self._connect(holders)

    def _hosts(self, common: str) -> list[str] | None:
        """Everything; or a view that many have, or others, with or without some relations."""
        rng, views = self._rng, sorted(self._program.views)
        if rng.random() < 0.2:
            return None
        chosen = {common} if rng.random() < 0.7 else set()
        chosen |= set(rng.sample(views, min(rng.choice([0, 1, 1, 2]), len(views)))) or {common}
        return sorted(chosen | {name for name in self._program.relations if rng.random() < 0.08})

    def _holders(self, *, unseen: bool) -> list[Collection[str]]:
        """The sites that have everything; and for each relation those that host it, or have it unseen."""
        program = self._program
        held = {
            name: hosts if hosts is None else Exchange(program, hosts, name).held if unseen else set(hosts)
            for name, hosts in self.hosts.items()
        }
        whole = [name for name, hosts in held.items() if hosts is None]
        return [
            whole,
            *([name for name, h in held.items() if h is None or r in h] for r in program.relations),
        ]

    def _connect(self, holders: Collection[str]) -> None:
        """Link sites with the first, where no way goes over these alone."""
        first = next(iter(self.hosts))
        for name in holders:
            reached = [first]
            for one in reached:
                near = {b if a == one else a for a, b in self.links if one in (a, b)}
                reached += sorted(near & set(holders) - set(reached))
            if name not in reached:
                self.links.append((first, name))

    def pair(self, one: str, other: str) -> tuple[str, str]:
        """Two sites that meet: mostly such that are linked."""
        found = self._rng.choice(self.links)
        if self._rng.random() < 0.15:
            return one, other
        return found if self._rng.random() < 0.5 else (found[1], found[0])

    def arrive(self, name: str) -> str:
        """A newcomer that hosts everything; return with whom it is linked."""
        near = self._rng.choice([name for name, hosts in self.hosts.items() if hosts is None])
        self.hosts[name] = None
        self.links.append((near, name))
        return near


def _shape(shape: str, names: Sequence[str], rng: random.Random) -> list[tuple[str, str]]:
    line = list(pairwise(names))
    match shape:
        case "ring":
            return line + ([(names[-1], names[0])] if len(names) > 2 else [])
        case "mesh":
            return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        case "tree":
            return [(rng.choice(names[:i]), names[i]) for i in range(1, len(names))]
        case _:
            return line
