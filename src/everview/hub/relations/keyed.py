"""Keyed relations: the last write of each key, and whether it was an insert."""

from __future__ import annotations

from everview.hub.relations.base import VERSION, LatticeTable
from everview.hub.runs import Layout
from everview.language.aggregates import AggregateCall
from everview.language.expressions import Call, Expression, Literal, conjunction
from everview.language.plan import Aggregate, Distinct, Filter, Join, JoinKind, Plan, Scan, Schema, UnionAll
from everview.language.types import BIGINT, Field
from everview.planner.circuit.weighted import (
    ONE,
    ZERO,
    columns,
    compare,
    consolidated,
    minus,
    project,
)
from everview.planner.conditions import equal

__all__ = ["KeyedTable"]

_MARK = Field("mark", BIGINT, nullable=False)
_TWO = Literal(2, BIGINT)


class KeyedTable(LatticeTable):
    """A key's last row, its mark, and the refresh in which it came."""

    @property
    def key(self) -> tuple[int, ...]:
        """The columns of the key."""
        return self.relation.key_positions

    @property
    def schema(self) -> Schema:
        """The columns, the mark, the version."""
        return (*self.relation.schema, _MARK, VERSION)

    @property
    def layout(self) -> Layout:
        """A key's row is stored again when it changes."""
        return Layout(len(self.relation.schema), latest=True, key=self.key)

    def candidates(self) -> Plan | None:
        """Not known: the row that a key had before is not in what has come."""
        return None

    def steps(self) -> list[tuple[str, Plan]]:
        """All versions; the last mark of each key, now and before; the rows with the last marks."""
        width = len(self.relation.schema)
        stored = project(self.found, columns(self.found)[: width + 1])
        versions = Distinct(UnionAll((stored, project(self.arrived, columns(self.arrived)))))
        keys = len(self.key)
        marked = UnionAll((self._marks(self.found, is_old=True), self._marks(self.arrived, is_old=False)))
        every = columns(marked)
        calls = tuple(AggregateCall("max", column) for column in every[keys:])
        last = Aggregate(marked, every[:keys], calls, tuple(f"x{i}" for i in range(keys + 2)))
        rows, lasts = self._scan("versions", versions), self._scan("last", last)
        right = columns(lasts, start=width + 1)
        own = columns(rows)
        pairs = [equal(own[place], right[at]) for at, place in enumerate(self.key)]
        met = Join(JoinKind.INNER, rows, lasts, conjunction([*pairs, equal(own[width], right[keys])]))
        winners = project(met, (*columns(met)[: width + 1], columns(met)[-1]))
        return [
            (self._named("versions"), versions),
            (self._named("last"), last),
            (self._named("winners"), winners),
        ]

    def _marks(self, table: Scan, *, is_old: bool) -> Plan:
        every = columns(table)
        mark = every[len(self.relation.schema)]
        old: Expression = mark if is_old else ZERO
        return project(table, (*(every[place] for place in self.key), mark, old))

    def change(self) -> Plan:
        """The last rows come, those that were the last go."""
        winners = self._winners()
        width = len(self.relation.schema)
        come = self._present(winners)
        gone = self._present(self.found)
        both = UnionAll(
            (
                project(come, (*columns(come)[:width], ONE)),
                project(gone, (*columns(gone)[:width], minus(ZERO, ONE))),
            )
        )
        return consolidated(both)

    def _present(self, table: Plan) -> Plan:
        mark = columns(table)[len(self.relation.schema)]
        return Filter(table, compare(Call("%", (mark, _TWO), BIGINT), "=", ONE))

    def growth(self, version: int) -> Plan:
        """The rows that are the last since now."""
        winners = self._winners()
        *own, mark, old = columns(winners)
        newer = Filter(winners, compare(mark, ">", old))
        return project(newer, (*own, mark, Literal(version, BIGINT)))

    def _winners(self) -> Scan:
        _, _, (name, plan) = self.steps()
        return Scan(name, plan.schema)

    def _named(self, step: str) -> str:
        return f"{self.relation.name}@{step}"

    def _scan(self, step: str, plan: Plan) -> Scan:
        return Scan(self._named(step), plan.schema)
