"""Narrowing: of the tables that a plan reads, the driver brings in what it needs, where that is little.

A filter that says what the values of a table's keys are is a lookup by their hashes. A small table is read as
it is. What is left belongs to the executors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from everview.engines.spark.types import arrow_table
from everview.hub.contents import Found, local_table, stored_table
from everview.hub.files import Files
from everview.hub.record import Record
from everview.hub.runs import distinct
from everview.hub.tables import Catalog
from everview.language.expressions import Call, Column, Expression, InList, IsDistinct, Literal, Not
from everview.language.plan import Filter, Plan, Scan, map_inputs
from everview.planner.circuit.parts import delta_scan
from everview.planner.conditions import conjuncts

__all__ = ["Narrowed", "Narrowing"]

KEYS = 10_000
"""How many keys the driver looks up for one table."""

Keys = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A plan over other tables: those that are here, and names of relations and views that are not."""

    plan: Plan
    here: Mapping[str, tuple[Scan, pa.Table]]
    elsewhere: frozenset[str]


@dataclass(slots=True)
class Narrowing:
    """Reads tables of one refresh: at most so many rows of each, `small` of one that is read as it is."""

    files: Files
    catalog: Catalog
    record: Record
    most: int
    small: int
    _read: dict[tuple[str, str, Keys | None], tuple[Scan, pa.Table] | None] = field(default_factory=dict)

    def narrow(self, plan: Plan, given: Mapping[str, tuple[Scan, pa.Table]]) -> Narrowed:
        """The plan, rewritten already, over what the driver has of its tables; `given` ones it has."""
        here = dict(given)
        elsewhere: set[str] = set()

        def visit(node: Plan) -> Plan:
            match node:
                case Filter(Scan() as scan, predicate):
                    return Filter(table(scan, predicate), predicate)
                case Scan():
                    return table(node, None)
                case _:
                    return map_inputs(node, visit)

        def table(scan: Scan, predicate: Expression | None) -> Scan:
            if scan.name in given:
                return scan
            found = self._table(scan, predicate)
            if found is None:
                elsewhere.add(scan.name)
                return scan
            here[found[0].name] = found
            return found[0]

        return Narrowed(visit(plan), here, frozenset(elsewhere))

    def _table(self, scan: Scan, predicate: Expression | None) -> tuple[Scan, pa.Table] | None:
        values = {} if predicate is None else _values(predicate)
        own = stored_table(self.catalog, scan.name)
        if sum(run.rows for run in self.record.runs(own)) > self.small:
            for table in self._arrangements(scan):
                columns = self._keys(table)
                if columns and math.prod(len(values.get(column, ())) for column in columns) in range(
                    1, KEYS + 1
                ):
                    keys = tuple(itertools.product(*(values[column] for column in columns)))
                    found = self._once(scan, table, keys)
                    if found is not None:
                        return found
        return self._once(scan, own, None)

    def _arrangements(self, scan: Scan) -> Iterator[str]:
        """The tables that have all rows of a relation or view: its own, and those that joins keep of it."""
        yield stored_table(self.catalog, scan.name)
        for kept in self.catalog.circuit.kept.values():
            if kept.change == delta_scan(scan.name, scan.schema) and not kept.order:
                yield kept.name

    def _keys(self, table: str) -> tuple[int, ...]:
        """The columns by whose hash the rows of a table are found; none if a hash says little."""
        hashed = self.catalog.hashed(table)
        return () if hashed.spread else hashed.columns

    def _once(self, scan: Scan, table: str, keys: Keys | None) -> tuple[Scan, pa.Table] | None:
        known = scan.name, table, keys
        if known not in self._read:
            rows = self._rows(scan.name, table, keys)
            name = f"everview_{len(self._read)}"
            self._read[known] = None if rows is None else (Scan(name, scan.schema), rows)
        return self._read[known]

    def _rows(self, name: str, table: str, keys: Keys | None) -> pa.Table | None:
        if keys is None:
            return local_table(self.files, self.catalog, self.record, name, self.small)
        hashed = self.catalog.hashed(table)
        fields = tuple(self.catalog.schemas[table][column] for column in hashed.columns)
        hashes = distinct(hashed.of_keys(fields, arrow_table(fields, keys)))
        return local_table(self.files, self.catalog, self.record, name, self.most, Found(table, hashes))


def _values(predicate: Expression) -> dict[int, Sequence[Any]]:
    """The columns of which a condition says that they have one of few values."""
    found: dict[int, Sequence[Any]] = {}
    for part in conjuncts(predicate):
        match part:
            case Not(IsDistinct(Column(place), Literal(value))) | Not(
                IsDistinct(Literal(value), Column(place))
            ):
                found[place] = (value,)
            case Call("=", (Column(place), Literal(value))) | Call("=", (Literal(value), Column(place))):
                found[place] = (value,)
            case InList(Column(place), items) if all(isinstance(item, Literal) for item in items):
                found.setdefault(place, [item.value for item in items if isinstance(item, Literal)])
            case _:
                pass
    return found
