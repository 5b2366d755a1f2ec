"""In which stage of a large refresh everything happens.

Stage 1 joins what has come with the relations. An operator runs one stage after all that its kept rows change
by has been made, and so are the kept rows written. Views, which remember nothing, change in the stage in
which what they read does. Whatever no arrival can reach is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from everview.hub.groups import Group
from everview.hub.relations import LatticeTable
from everview.hub.tables import Catalog
from everview.planner.circuit import Kept, Operator
from everview.planner.circuit.parts import sources

__all__ = ["Stage", "Stages"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What is done with the rows of one range in one stage, and which streams are still needed after it."""

    number: int
    merged: tuple[LatticeTable, ...]
    operators: tuple[Operator, ...]
    written: tuple[Kept, ...]
    passed: frozenset[str]

    @property
    def needed(self) -> frozenset[str]:
        """The streams that are read in it."""
        kept = {kept.name for operator in self.operators for kept in operator.kept}
        return frozenset(kept | {kept.name for kept in self.written} | {table.name for table in self.merged})


class Stages:
    """The stages of a refresh that begins with arrivals in some relations.

    What is computed `anew` begins with all rows of the relations that it reads instead, as if it was the
    first refresh.
    """

    def __init__(
        self, catalog: Catalog, touched: Iterable[str], anew: Iterable[Group], *, first: bool
    ) -> None:
        circuit = catalog.circuit
        self.anew = frozenset(name for group in anew for name in (*group.operators, *group.kept))
        """The operators and kept rows that are."""
        self.scanned = frozenset(name for group in anew for name in group.relations)
        """The relations of which they read all rows."""
        come = frozenset(touched)
        made: dict[str, int] = {}
        self._merged = tuple(
            table for table in catalog.relations if table.relation.name in come | self.scanned
        )
        self._catalog = catalog
        self._runs: dict[str, int] = {}
        self.first: list[Operator] = []
        """The operators that have rows before anything has come."""
        self.stateless: list[Operator] = []
        """The operators that remember nothing, each after those it reads."""
        self.kept: dict[str, int] = {}
        """The kept rows that may change, and after which stage all of their change is there."""
        for operator in circuit.operators.values():
            reads = come if operator.name not in self.anew else self.scanned
            reached = [1 for name in operator.reads & reads]
            reached += [made[name] for name in operator.reads if name in made]
            begins = operator.first is not None and (first or operator.name in self.anew)
            if begins:
                self.first.append(operator)
            if not reached and not begins:
                continue
            made[operator.name] = max(reached, default=0)
            if reached and operator.remembers:
                made[operator.name] += 1
                self._runs[operator.name] = made[operator.name]
            elif reached:
                self.stateless.append(operator)
        for kept in circuit.kept.values():
            reads = come if kept.name not in self.anew else self.scanned
            reached = [1 for name in sources(kept.change) & reads]
            reached += [made[name] for name in sources(kept.change) if name in made]
            if reached:
                self.kept[kept.name] = max(reached)

    def __iter__(self) -> Iterator[Stage]:
        last = max([1, *(number + 1 for number in self.kept.values())])
        return (self._stage(number) for number in range(1, last + 1))

    def _stage(self, number: int) -> Stage:
        circuit = self._catalog.circuit
        later = {
            kept.name
            for name, runs in self._runs.items()
            if runs > number
            for kept in circuit.operators[name].kept
        }
        later |= {name for name, made in self.kept.items() if made + 1 > number}
        return Stage(
            number,
            self._merged if number == 1 else (),
            tuple(circuit.operators[name] for name, runs in self._runs.items() if runs == number),
            tuple(circuit.kept[name] for name, made in self.kept.items() if made + 1 == number),
            frozenset(later),
        )
