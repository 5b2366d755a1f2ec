"""Random histories: statements over the relations of a program, each of one or more writes.

Relations first fill; then rows come, go, change and come back, some in several relations at once, some that
are already there or already gone; now and then a relation empties.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from everview.language.program import Program
from everview.language.relations import Relation
from everview.testing.fuzz.domains import Domain
from everview.testing.fuzz.model import Model, Row

__all__ = ["Statement", "Write", "generate_history"]


@dataclass(frozen=True, slots=True)
class Write:
    """Rows to insert into a relation or to delete from it."""

    action: Literal["insert", "delete"]
    relation: str
    rows: tuple[Row, ...]


Statement = tuple[Write, ...]
"""Writes that happen together: the views are looked at after all of them."""


def generate_history(
    rng: random.Random, program: Program, domain: Domain, *, statements: int = 10, most: int = 6
) -> tuple[Statement, ...]:
    """A history of that many statements, after which no relation has many more than `most` rows."""
    makes = _Histories(rng, program, domain, most)
    first = list(program.relations)
    rng.shuffle(first)
    history = [makes.fill(name) for name in first]
    while len(history) < statements:
        history.append(makes.statement())
    return tuple(history)


@dataclass(slots=True)
class _Histories:
    rng: random.Random
    program: Program
    domain: Domain
    most: int
    model: Model = field(init=False)
    seen: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.model = Model(self.program)
        self.seen = {name: [] for name in self.program.relations}

    def fill(self, name: str) -> Statement:
        return (self._insert(name, self._fresh(name, self.rng.randint(2, 5))),)

    def statement(self) -> Statement:
        writes = [*self._writes(self._relation())]
        if self.rng.random() < 0.15:
            writes += self._writes(self._relation())
        return tuple(writes)

    def _relation(self) -> str:
        return self.rng.choice(list(self.program.relations))

    def _writes(self, name: str) -> Iterable[Write]:
        rng, here = self.rng, self.model.rows(name)
        draw = rng.random()
        if len(here) > self.most:
            draw = 0.5 + draw / 4  # it is full: delete
        few = rng.choice((1, 1, 1, 2, 3))
        if draw < 0.3 or not self.seen[name]:
            return [self._insert(name, self._fresh(name, few))]
        if draw < 0.4:  # rows that were there once, or still are
            return [self._insert(name, rng.choices(self.seen[name], k=few))]
        if draw < 0.5:  # fresh ones, and one that was there
            return [self._insert(name, [*self._fresh(name, 1), rng.choice(self.seen[name])])]
        if draw < 0.7 and here:
            return [self._delete(name, rng.sample(here, min(few, len(here))))]
        if draw < 0.76:
            return [self._delete(name, [*self._fresh(name, 1), *rng.choices(self.seen[name], k=few)])]
        if draw < 0.82:
            return [self._delete(name, here)]
        return self._update(name, here)

    def _update(self, name: str, here: list[Row]) -> list[Write]:
        """Change a column of some rows; the key of a keyed relation seldom."""
        if not here:
            return [self._insert(name, self._fresh(name, 1))]
        relation = self.program.relations[name]
        old = self.rng.sample(here, min(len(here), self.rng.choice((1, 1, 2))))
        new = [self._changed(relation, row) for row in old]
        if relation.key and self.rng.random() < 0.7:
            return [self._insert(name, new)]
        return [self._delete(name, old), self._insert(name, new)]

    def _changed(self, relation: Relation, row: Row) -> Row:
        free = [i for i, f in enumerate(relation.schema) if f.name not in relation.key]
        place = self.rng.choice(free or range(len(row)))
        fields = relation.schema[place]
        value = self.domain.value(self.rng, fields.type, nullable=fields.nullable)
        return (*row[:place], value, *row[place + 1 :])

    def _fresh(self, name: str, count: int) -> list[Row]:
        schema = self.program.relations[name].schema
        return [
            tuple(self.domain.value(self.rng, f.type, nullable=f.nullable) for f in schema)
            for _ in range(count)
        ]

    def _insert(self, name: str, rows: list[Row]) -> Write:
        self.model.insert(name, rows)
        self.seen[name] = [*self.seen[name], *rows][-20:]
        return Write("insert", name, tuple(rows))

    def _delete(self, name: str, rows: list[Row]) -> Write:
        self.model.delete(name, rows)
        return Write("delete", name, tuple(rows))
