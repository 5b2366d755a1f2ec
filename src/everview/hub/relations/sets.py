"""Set and add-wins relations: rows and their causal lengths, of which the odd ones are present."""

from __future__ import annotations

import pyarrow as pa

from everview.hub.relations.base import VERSION, Joined, LatticeTable
from everview.hub.relations.by_hash import join_by_hash
from everview.hub.runs import Layout
from everview.language.aggregates import AggregateCall
from everview.language.expressions import (
    And,
    Call,
    Case,
    Expression,
    IsNull,
    Literal,
    Not,
)
from everview.language.plan import Aggregate, Filter, Plan, Project, Scan, Schema, UnionAll
from everview.language.types import BIGINT, Field
from everview.planner.circuit.parts import WEIGHT
from everview.planner.circuit.weighted import ONE, ZERO, add, columns, compare, minus, project

__all__ = ["SetTable"]

_TWO = Literal(2, BIGINT)
_NULL = Literal(None, BIGINT)
_LENGTH = Field("length", BIGINT, nullable=False)


class SetTable(LatticeTable):
    """A row, its causal length, and the refresh in which it last grew."""

    @property
    def schema(self) -> Schema:
        """The columns, the causal length, the refresh in which it last grew."""
        return (*self.relation.schema, _LENGTH, VERSION)

    @property
    def layout(self) -> Layout:
        """A row is stored again when it grows."""
        return Layout(len(self.relation.schema), latest=True)

    def joined(self, come: pa.Table, stored: pa.Table | None, version: int) -> Joined | None:
        """By their hashes alone, unless two rows have the same."""
        return join_by_hash(come, stored, len(self.relation.schema), version)

    def candidates(self) -> Plan:
        """All rows that may change."""
        rows = self.arrived
        return project(rows, (*columns(rows)[:-1], ONE))

    def _joined(self) -> Plan:
        """Each row with its length before and after; the last write of a row counts."""
        width = len(self.relation.schema)
        stored, come = self.found, self.arrived
        both = UnionAll(
            (
                project(stored, (*columns(stored)[:width], columns(stored)[width], _NULL)),
                project(come, (*columns(come)[:width], ZERO, columns(come)[width])),
            )
        )
        *own, length, wanted = columns(both)
        names = (*self.relation.columns, "before", "wanted")
        calls = AggregateCall("max", length), AggregateCall("max", wanted)
        grouped = Aggregate(both, tuple(own), calls, names)
        *own, before, last = columns(grouped)
        turns = And((Not(IsNull(last)), compare(_odd(last), "<>", _odd(before))))
        after = Case(((turns, add(before, ONE)),), before)
        return project(grouped, (*own, before, after))

    def steps(self) -> list[tuple[str, Plan]]:
        """The tables to be made one after the other, of what has come and what was found."""
        return [(f"{self.relation.name}@joined", self._joined())]

    def change(self) -> Plan:
        """The rows that appear and disappear."""
        joined = self._joined_scan()
        *own, before, after = columns(joined)
        named = (*self.relation.columns, WEIGHT.name)
        changed = Project(joined, (*own, minus(_odd(after), _odd(before))), named)
        return Filter(changed, compare(columns(changed)[-1], "<>", ZERO))

    def growth(self, version: int) -> Plan:
        """What is stored anew."""
        joined = self._joined_scan()
        *own, before, after = columns(joined)
        grown = Filter(joined, compare(after, ">", before))
        return project(grown, (*own, after, Literal(version, BIGINT)))

    def _joined_scan(self) -> Scan:
        return Scan(f"{self.relation.name}@joined", self._joined().schema)


def _odd(length: Expression) -> Expression:
    return Call("%", (length, _TWO), BIGINT)
