"""Rules that fire at one place: compiled joins, one for each atom that may bring something new.

A firing names the row at every position of the body. What rows are annotated with is no matter here: the two
modes combine annotations in their own ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everview.language.datalog.ast import (
    Anonymous,
    Atom,
    Comparison,
    Constant,
    Rule,
    Term,
    Variable,
    variables_of,
)
from everview.language.datalog.localising import Localised
from everview.language.datalog.printing import show_rule
from everview.language.plan import Schema
from everview.located.facts import Fact, Facts, Row
from everview.located.values import Bound, NoValueError, Terms

__all__ = ["Firing", "LocatedRule", "Rules"]

_Check = Callable[[Bound], bool]


@dataclass(frozen=True, slots=True)
class Firing:
    """A rule that holds: its head, where that lives, and the facts at the positions of its body."""

    rule: LocatedRule
    head: Fact
    place: str
    body: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """Look up the rows of one atom by what is bound, bind the rest, and check what can be checked then."""

    position: int
    relation: str
    indexed: tuple[int, ...]
    key: tuple[Callable[[Bound], Any], ...]
    binds: tuple[tuple[int, int], ...]
    """(position in the row, slot)."""
    equal: tuple[tuple[int, int], ...]
    """Positions that must have the value of a slot which the same row binds."""
    checks: tuple[_Check, ...]


class LocatedRule:
    """One rule whose body is at one place."""

    def __init__(self, rule: Rule, origin: Rule, schemas: Mapping[str, Schema]) -> None:
        self.text = show_rule(rule)
        self.origin = show_rule(origin)
        self.relation = rule.head.relation
        self._atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
        self._conditions = [literal for literal in rule.body if isinstance(literal, Comparison)]
        self._terms = Terms()
        for atom in self._atoms:
            for argument, column in zip(atom.arguments, schemas[atom.relation], strict=True):
                if isinstance(argument, Variable):
                    self._terms.slot(argument, column.type)
        self._at = rule.head.location or 0
        self.plans = {position: self._plan(position) for position in range(len(self._atoms))}
        # The plans have given a slot to what conditions compute.
        self._head = tuple(self._terms.value(argument) for argument in rule.head.arguments)

    @property
    def indexes(self) -> set[tuple[str, tuple[int, ...]]]:
        """The indexes that its look-ups need."""
        return {(s.relation, s.indexed) for steps in self.plans.values() for s in steps[1:] if s.indexed}

    @property
    def reads(self) -> list[str]:
        """The relations of its body, by position."""
        return [atom.relation for atom in self._atoms]

    def fire(self, driver: int, row: Row, facts: Facts) -> Iterator[Firing]:
        """All ways in which the rule holds with this row at a position, and held rows at the others."""
        steps = self.plans[driver]
        bound: Bound = [None] * len(self._terms)
        first = steps[0]
        if all(row[at] == value(bound) for at, value in zip(first.indexed, first.key, strict=True)):
            chosen: list[Row] = [()] * len(self._atoms)
            for _ in self._bound(steps, 0, (row,), bound, chosen, facts):
                try:
                    head = tuple([value(bound) for value in self._head])
                except NoValueError:
                    continue
                body = tuple((atom.relation, at) for atom, at in zip(self._atoms, chosen, strict=True))
                yield Firing(self, (self.relation, head), head[self._at], body)

    def _bound(
        self, steps: Sequence[_Step], at: int, rows: Any, bound: Bound, chosen: list[Row], facts: Facts
    ) -> Iterator[None]:
        step = steps[at]
        for row in rows:
            for position, slot in step.binds:
                bound[slot] = row[position]
            if any(row[position] != bound[slot] for position, slot in step.equal):
                continue
            try:
                if not all(check(bound) for check in step.checks):
                    continue
            except NoValueError:
                continue
            chosen[step.position] = row
            if at + 1 == len(steps):
                yield
                continue
            following = steps[at + 1]
            key = [value(bound) for value in following.key]
            # The rows are listed: what a firing adds is looked at in its own turn.
            found = list(facts.find(following.relation, following.indexed, key))
            yield from self._bound(steps, at + 1, found, bound, chosen, facts)

    def _plan(self, driver: int) -> tuple[_Step, ...]:
        known: set[str] = set()
        waiting = list(self._conditions)
        left = list(range(len(self._atoms)))
        steps = []
        position = driver
        while True:
            left.remove(position)
            steps.append(self._step(position, known, waiting))
            if not left:
                return tuple(steps)
            position = max(left, key=lambda at: (self._ties(at, known), -at))

    def _ties(self, position: int, known: set[str]) -> int:
        return sum(
            isinstance(a, Constant) or (isinstance(a, Variable) and a.name in known)
            for a in self._atoms[position].arguments
        )

    def _step(self, position: int, known: set[str], waiting: list[Comparison]) -> _Step:
        atom = self._atoms[position]
        indexed, key, binds, equal = [], [], [], []
        own: set[str] = set()
        for at, argument in enumerate(atom.arguments):
            match argument:
                case Variable(name) if name in known:
                    indexed.append(at)
                    key.append(self._terms.value(argument))
                case Variable(name) if name in own:
                    equal.append((at, self._slot(argument)))
                case Variable(name):
                    binds.append((at, self._slot(argument)))
                    own.add(name)
                case Anonymous():
                    pass
                case _:
                    indexed.append(at)
                    key.append(self._terms.value(argument))
        known |= own
        checks = self._ready(known, waiting)
        return _Step(position, atom.relation, tuple(indexed), tuple(key), tuple(binds), tuple(equal), checks)

    def _slot(self, variable: Variable) -> int:
        return self._terms.slot(variable, self._terms.type_of(variable))

    def _ready(self, known: set[str], waiting: list[Comparison]) -> tuple[_Check, ...]:
        """The conditions that can be checked now, in an order in which each finds what it needs."""
        checks: list[_Check] = []
        again = True
        while again:
            again = False
            for condition in list(waiting):
                left, right = condition.left, condition.right
                if condition.operator == "=" and isinstance(right, Variable) and right.name not in known:
                    left, right = right, left
                free = {v.name for v in variables_of(left) if v.name not in known}
                if any(v.name not in known for v in variables_of(right)):
                    continue
                if not free:
                    checks.append(self._terms.holds(condition))
                elif condition.operator == "=" and isinstance(left, Variable):
                    checks.append(self._assign(left, right))
                    known.add(left.name)
                else:
                    continue
                waiting.remove(condition)
                again = True
        return tuple(checks)

    def _assign(self, left: Variable, right: Term) -> _Check:
        slot, value = self._terms.slot(left, self._terms.type_of(right)), self._terms.value(right)

        def assign(bound: Bound) -> bool:
            bound[slot] = value(bound)
            return True

        return assign


class Rules:
    """All rules of a localised program, and where the facts of each relation live."""

    def __init__(self, program: Localised) -> None:
        schemas = program.schemas()
        self.all = [
            LocatedRule(rule, origin, schemas)
            for rule, origin in zip(program.rules, program.origin, strict=True)
        ]
        self.location: Mapping[str, int] = {
            found.relation: found.location or 0 for found in program.declarations
        }
        self.base = frozenset(found.relation for found in program.base)
        self._reading: dict[str, list[tuple[LocatedRule, int]]] = {}
        for rule in self.all:
            for position, relation in enumerate(rule.reads):
                self._reading.setdefault(relation, []).append((rule, position))

    def facts(self) -> Facts:
        """An empty set of facts with all the indexes that rules need."""
        return Facts({key for rule in self.all for key in rule.indexes})

    def fire(self, fact: Fact, facts: Facts) -> Iterator[tuple[int, Firing]]:
        """The firings of all rules with a fact at each position where it may stand, and that position."""
        for rule, position in self._reading.get(fact[0], ()):
            for firing in rule.fire(position, fact[1], facts):
                yield position, firing

    def place(self, fact: Fact) -> str:
        """Where a fact lives."""
        return str(fact[1][self.location[fact[0]]])

    def heads(self, relation: str) -> list[str]:
        """The rules of the program's text by which facts of a relation are made."""
        return list(dict.fromkeys(rule.origin for rule in self.all if rule.relation == relation))
