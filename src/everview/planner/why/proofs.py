"""Proofs: why a row of a recursion is there, as a tree of rows, each derived from those below it.

A recursive row may have infinitely many derivations, and as many minimal sets of rows as a graph has paths.
So of a row one proof is given: one of least height, and of those a small one. It is looked for from the row
backwards, all rows of one distance at once, until what was found proves it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.language.correlation import scans_of
from everview.language.expressions import Expression, conjunction, shift
from everview.language.plan import (
    Field,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    RecursiveScan,
    Scan,
)
from everview.language.recursion import Clause, group_clauses
from everview.planner.conditions import all_columns, same
from everview.planner.why.evidence import Evidence, Question, Row, ask

__all__ = ["Derivation", "Fact", "Proof", "Search"]

_TRUE = conjunction([])


@dataclass(frozen=True, slots=True)
class Proof:
    """A row, the relation or view that it is of, and the proofs of the rows that it was derived from.

    A row of a relation, or of what the recursion reads, has no premises here: `why` of that row says more.
    """

    relation: str
    row: tuple[Any, ...]
    premises: tuple[Proof, ...] = ()

    def walk(self) -> Iterator[tuple[int, Proof]]:
        """The proof and all proofs below it, from left to right, each with its depth; to any depth."""
        waiting: list[tuple[int, Proof]] = [(0, self)]
        while waiting:
            depth, proof = waiting.pop()
            yield depth, proof
            waiting += [(depth + 1, premise) for premise in reversed(proof.premises)]

    @property
    def height(self) -> int:
        """How many derivations stand one above the other."""
        return max(depth for depth, _ in self.walk())

    def leaves(self) -> list[Proof]:
        """The rows at the bottom, from left to right."""
        return [proof for _, proof in self.walk() if not proof.premises]

    def __str__(self) -> str:
        lines = []
        for depth, proof in self.walk():
            lines.append(f"{'  ' * depth}{proof.relation}({', '.join(map(_shown, proof.row))})")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Fact:
    """A row of a relation of the group."""

    relation: str
    row: Row


@dataclass(frozen=True, slots=True)
class Derivation:
    """The rows that a clause made a fact from, one for each atom."""

    clause: Clause
    rows: tuple[Row, ...]

    def facts(self) -> Iterator[Fact]:
        """Those of the group."""
        for atom, row in zip(self.clause.atoms, self.rows, strict=True):
            if isinstance(atom, RecursiveScan):
                yield Fact(atom.name, row)

    def inputs(self) -> Iterator[tuple[Plan, Row]]:
        """Those of the inputs."""
        for atom, row in zip(self.clause.atoms, self.rows, strict=True):
            if not isinstance(atom, RecursiveScan):
                yield atom, row


@dataclass(slots=True)
class Search:
    """The derivations of facts of one group that were found, and which facts they prove."""

    evidence: Evidence
    group: Fixpoint
    derivations: dict[Fact, list[Derivation]] = field(default_factory=dict)
    chosen: dict[Fact, Derivation] = field(default_factory=dict)
    """Of a fact that is proved, how."""
    _sizes: dict[Fact, int] = field(default_factory=dict)
    _known: list[tuple[str, Clause, Plan]] = field(default_factory=list)

    def prove(self, rows: Sequence[Row]) -> None:
        """Find proofs of rows that the group's relation has."""
        wanted = [Fact(self.group.result, row) for row in rows]
        frontier = [fact for fact in wanted if fact not in self.derivations]
        while frontier:
            self._explore(frontier)
            self._conclude()
            if all(fact in self.chosen for fact in wanted):
                return
            found = (premise for fact in frontier for d in self.derivations[fact] for premise in d.facts())
            frontier = [fact for fact in dict.fromkeys(found) if fact not in self.derivations]

    def behind(self, facts: Sequence[Fact]) -> list[Fact]:
        """The facts in the proofs of facts, each after those it is derived from."""
        used, waiting = dict.fromkeys(facts), list(facts)
        while waiting:
            new = [fact for fact in self.chosen[waiting.pop()].facts() if fact not in used]
            used |= dict.fromkeys(new)
            waiting += new
        return sorted(used, key=self._sizes.__getitem__)

    def proof(self, fact: Fact) -> Proof:
        """The tree of a fact that is proved."""
        made: dict[Fact, Proof] = {}
        for one in self.behind([fact]):
            chosen = self.chosen[one]
            below = [made[premise] for premise in chosen.facts()]
            given = [Proof(_named(plan), row) for plan, row in chosen.inputs() if any(scans_of(plan))]
            made[one] = Proof(one.relation, one.row, (*below, *given))
        return made[fact]

    def _explore(self, facts: Sequence[Fact]) -> None:
        """Look up all derivations of facts."""
        by_relation: defaultdict[str, list[Row]] = defaultdict(list)
        for fact in facts:
            by_relation[fact.relation].append(fact.row)
            self.derivations[fact] = []
        for name, clause, body in self._bodies():
            if by_relation[name]:
                schema = tuple(Field(f"x{place}", e.type) for place, e in enumerate(clause.head))
                question = Question(by_relation[name], schema, body, _meeting(schema, clause.head))
                pairs = ask(self.evidence, question)
                for row, other in pairs:
                    parts = zip(clause.offsets, clause.atoms, strict=True)
                    rows = tuple(other[start : start + len(atom.schema)] for start, atom in parts)
                    self.derivations[Fact(name, row)].append(Derivation(clause, rows))

    def _bodies(self) -> list[tuple[str, Clause, Plan]]:
        """The clauses of the group, and the plan of each one's body."""
        if not self._known:
            scans = self.evidence.recursive(self.group)
            for name, clauses in group_clauses(self.group).items():
                self._known += [(name, clause, _body(clause, scans)) for clause in clauses]
        return self._known

    def _conclude(self) -> None:
        """Prove what the derivations found so far prove, what has the least height first."""
        while True:
            new: dict[Fact, tuple[int, Derivation]] = {}
            for fact, found in self.derivations.items():
                if fact in self.chosen:
                    continue
                ready = [d for d in found if all(premise in self.chosen for premise in d.facts())]
                if ready:
                    sizes = [1 + sum(self._sizes[premise] for premise in d.facts()) for d in ready]
                    best = min(range(len(ready)), key=sizes.__getitem__)
                    new[fact] = sizes[best], ready[best]
            if not new:
                return
            for fact, (size, derivation) in new.items():
                self.chosen[fact], self._sizes[fact] = derivation, size


def _meeting(schema: Sequence[Field], head: Sequence[Expression]) -> Expression:
    own = all_columns(tuple(schema))
    others = [shift(expression, len(own)) for expression in head]
    return conjunction([same(one, other) for one, other in zip(own, others, strict=True)])


def _body(clause: Clause, scans: Mapping[str, Scan]) -> Plan:
    """The rows of a clause's atoms that meet its conditions; those of the group are read as they are kept."""
    atoms = [scans[a.name] if isinstance(a, RecursiveScan) else a for a in clause.atoms]
    plan: Plan = atoms[0]
    for atom in atoms[1:]:
        plan = Join(JoinKind.INNER, plan, atom, _TRUE)
    if clause.conditions:
        plan = Filter(plan, conjunction(clause.conditions))
    for absence in clause.absences:
        plan = Join(JoinKind.ANTI, plan, absence.plan, absence.condition)
    return plan


def _shown(cell: Any) -> str:
    if cell is None:
        return "NULL"
    return f'"{cell}"' if isinstance(cell, str) else str(cell)


def _named(plan: Plan) -> str:
    return ", ".join(dict.fromkeys(scans_of(plan)))
