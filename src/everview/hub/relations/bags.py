"""Bag relations: how many copies of a row there are. A delete takes one copy, if there is one.

What a gate tells (see `exporting`) is how many copies there are, whatever there were before: all are taken
away, then so many come.
"""

from __future__ import annotations

from everview.hub.relations.base import LatticeTable, Values
from everview.hub.runs import Layout
from everview.language.aggregates import AggregateCall, Frame, SortKey, WindowCall
from everview.language.expressions import Call, Case, Literal
from everview.language.plan import Aggregate, Filter, Plan, Scan, Schema, UnionAll, Window
from everview.language.types import BIGINT
from everview.planner.circuit.parts import WEIGHT
from everview.planner.circuit.weighted import (
    ONE,
    ZERO,
    add,
    columns,
    compare,
    minus,
    or_zero,
    project,
    total,
)

__all__ = ["BagTable"]

_TWO = Literal(2, BIGINT)
_ALL = Literal(2**40, BIGINT)
"""More copies than there can be."""


class BagTable(LatticeTable):
    """A row and its number of copies, which adds up."""

    @property
    def schema(self) -> Schema:
        """The columns and the number of copies."""
        return (*self.relation.schema, WEIGHT)

    @property
    def layout(self) -> Layout:
        """The copies that come and go are added up."""
        return Layout(len(self.relation.schema))

    @property
    def often(self) -> str:
        """As many as there are copies."""
        return f"c{len(self.relation.schema)}"

    def weights(self, values: Values) -> Values:
        """The copies."""
        return values

    def candidates(self) -> Plan | None:
        """The rows that have come."""
        return project(self.arrived, (*columns(self.arrived)[:-1], ONE))

    def steps(self) -> list[tuple[str, Plan]]:
        """Each row with its copies before, what the writes add up to, and the lowest that they came to.

        Deletes of what is not there do nothing, so the writes count one after the other: whatever they would
        fall below 0 on the way is not taken away.
        """
        width = len(self.relation.schema)
        *own, mark = columns(self.arrived)
        clears = compare(mark, "<", ZERO)
        number = Call("/", (Case(((clears, minus(ZERO, mark)),), mark), _TWO), BIGINT)
        inserts = compare(Call("%", (mark, _TWO), BIGINT), "=", ONE)
        moved = Case(((inserts, ONE), (clears, minus(ZERO, _ALL))), minus(ZERO, ONE))
        moves = project(self.arrived, (*own, number, moved))
        every = columns(moves)
        names = tuple(f"x{i}" for i in range(width + 2))
        writes = Aggregate(moves, every[: width + 1], (total(every[-1]),), names)
        *own, number_of, amount = columns(writes)
        running = WindowCall(
            "sum", (amount,), tuple(own), (SortKey(number_of),), (), Frame("rows", None, 0), BIGINT
        )
        course = Window(writes, (running,), ("course",))
        *own, _, amount, level = columns(course)
        calls = total(amount), AggregateCall("min", level)
        sums = Aggregate(course, tuple(own), calls, names)
        stored = self.found
        null = Literal(None, BIGINT)
        both = UnionAll(
            (
                project(stored, (*columns(stored)[:width], columns(stored)[width], ZERO, null)),
                project(sums, (*columns(sums)[:width], ZERO, *columns(sums)[width:])),
            )
        )
        *own, before, amount, lowest = columns(both)
        least = AggregateCall("min", lowest)
        joined = Aggregate(both, tuple(own), (total(before), total(amount), least), (*names, "lowest"))
        return [(f"{self.relation.name}@joined", joined)]

    def change(self) -> Plan:
        """The copies that come and go."""
        ((name, plan),) = self.steps()
        joined = Scan(name, plan.schema)
        *own, before, amount, lowest = columns(joined)
        below = Call("least", (ZERO, add(before, or_zero(lowest))), BIGINT)
        changed = project(joined, (*own, minus(amount, below)))
        return Filter(changed, compare(columns(changed)[-1], "<>", ZERO))

    def growth(self, version: int) -> Plan:  # noqa: ARG002  (copies add up, whenever they came)
        """The same."""
        return self.change()
