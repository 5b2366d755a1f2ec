"""What every part of the generator shares: the dice, the names, and the record of what was drawn.

All randomness comes from one `random.Random`, and every choice is made from a sequence whose order is
fixed, so a seed gives the same program in every process.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from everview.language.types import Kind
from everview.testing.fuzz.domains import KINDS, TYPES, Domain, literal

__all__ = ["Column", "Grammar", "Scope", "Scopes", "plain"]

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Column:
    """Something that an expression may name: its text and kind.

    `plain` columns may also be named by subqueries; aggregates and window calls may not.
    """

    sql: str
    kind: Kind
    plain: bool = True


Scope = tuple[Column, ...]
Scopes = tuple[Scope, ...]
"""The columns in sight, the innermost query's first."""


def plain(scopes: Scopes) -> Scopes:
    """What a subquery at this place sees of the queries around it."""
    return tuple(tuple(column for column in scope if column.plain) for scope in scopes)


@dataclass(slots=True)
class Grammar:
    """The state of one generation.

    `query` makes a query with columns of the given kinds, `c0`, `c1`, …, that sees the given scopes; it
    is here because expressions hold queries and queries hold expressions.
    """

    rng: random.Random
    domain: Domain
    tables: dict[str, tuple[tuple[str, Kind], ...]]
    query: Callable[[Grammar, Sequence[Kind], Scopes, int], str]
    noted: set[str] = field(default_factory=set)
    subqueries: int = 0
    _names: int = 0

    def note(self, construct: str) -> None:
        """Record that the text being made holds this construct."""
        self.noted.add(construct)

    def chance(self, probability: float) -> bool:
        """Whether, this time."""
        return self.rng.random() < probability

    def pick(self, things: Sequence[Thing]) -> Thing:
        """One of them."""
        return things[int(self.rng.random() * len(things))]

    def weighted(self, weights: dict[Thing, float]) -> Thing:
        """One of the keys, by weight."""
        point = self.rng.random() * sum(weights.values())
        for thing, weight in weights.items():
            point -= weight
            if point < 0:
                return thing
        return next(iter(weights))

    def name(self, prefix: str) -> str:
        """A name that this text does not use yet."""
        self._names += 1
        return f"{prefix}{self._names}"

    def kind(self) -> Kind:
        """A kind of column: mostly one that some table has, so that views say something about rows."""
        if self.chance(0.6):
            return self.pick([kind for columns in self.tables.values() for _, kind in columns])
        return self.pick((*KINDS, Kind.BIGINT, Kind.BIGINT, Kind.BIGINT, Kind.TEXT))

    def literal(self, kind: Kind) -> str:
        """A literal of the kind, seldom from the ends of its type."""
        domain = replace(self.domain, edge=0.08, null=0.0)
        return literal(domain.value(self.rng, self.pick(TYPES[kind])), kind)
