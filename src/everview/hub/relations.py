"""Relations of a hub: lattice tables, and how what has arrived makes them grow and changes their rows.

Like the rules of a circuit these are plans, over three tables: `r@arrived`, what has come; `r:r@found`, what
is stored of it; and `r@joined`, each key with its value before and after.
"""

from __future__ import annotations

from dataclasses import dataclass

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
from everview.language.relations import Relation
from everview.language.types import BIGINT, Field
from everview.planner.circuit.parts import WEIGHT, Kept, Lookup
from everview.planner.circuit.weighted import ONE, ZERO, add, columns, compare, minus, project

__all__ = ["SetTable", "table_name"]

_TWO = Literal(2, BIGINT)
_NULL = Literal(None, BIGINT)
_LENGTH = Field("length", BIGINT, nullable=False)
_VERSION = Field("version", BIGINT, nullable=False)


def table_name(relation: str) -> str:
    """The name of a relation's table among those of a store."""
    return f"r:{relation}"


@dataclass(frozen=True, slots=True)
class SetTable:
    """A set relation: its rows and their causal lengths, of which the odd ones are present."""

    relation: Relation

    @property
    def name(self) -> str:
        """Its name among the tables of a store."""
        return table_name(self.relation.name)

    @property
    def schema(self) -> Schema:
        """The columns, the causal length, the refresh in which it last grew."""
        return (*self.relation.schema, _LENGTH, _VERSION)

    @property
    def layout(self) -> Layout:
        """A row is stored again when it grows."""
        return Layout(len(self.relation.schema), latest=True)

    @property
    def arrived(self) -> Scan:
        """What has come: rows, and whether each is wanted: twice the number of the write, and one if so."""
        return Scan(f"{self.relation.name}@arrived", (*self.relation.schema, Field("wanted", BIGINT)))

    @property
    def found(self) -> Scan:
        """What is stored of the rows that have come."""
        return Scan(f"{self.name}@found", self.schema)

    def candidates(self) -> Plan:
        """All rows that may change."""
        rows = self.arrived
        return project(rows, (*columns(rows)[:-1], ONE))

    def keys(self) -> list[Lookup]:
        """What is looked up: the rows that have come."""
        rows = self.arrived
        own = Kept(self.name, rows, len(self.relation.schema), tuple(range(len(self.relation.schema))))
        return [Lookup(own, project(rows, columns(rows)[:-1]))]

    def joined(self) -> Plan:
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
        return [(f"{self.relation.name}@joined", self.joined())]

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
        return Scan(f"{self.relation.name}@joined", self.joined().schema)


def _odd(length: Expression) -> Expression:
    return Call("%", (length, _TWO), BIGINT)
