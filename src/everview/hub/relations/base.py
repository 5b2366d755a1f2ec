"""What every lattice table of a hub has: a layout, and plans that join what has come with what is stored.

Like the rules of a circuit these are plans over tables: `r@arrived`, what has come, and `r:r@found`, what is
stored of it. From them the steps make others, then come the change of the rows and what is stored anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from everview.engines.spark.types import arrow_schema
from everview.hub.runs import Layout
from everview.language.plan import Plan, Scan, Schema
from everview.language.relations import Relation
from everview.language.types import BIGINT, Field
from everview.planner.circuit.parts import WEIGHT, Kept, Lookup
from everview.planner.circuit.weighted import columns, project

__all__ = ["VERSION", "LatticeTable", "table_name"]

Values = NDArray[np.int64]
Joined = tuple[pa.Table, pa.Table]

VERSION = Field("version", BIGINT, nullable=False)


def table_name(relation: str) -> str:
    """The name of a relation's table among those of a store."""
    return f"r:{relation}"


@dataclass(frozen=True)
class LatticeTable(ABC):
    """A relation as a hub stores it: its columns come first."""

    relation: Relation

    @property
    def name(self) -> str:
        """Its name among the tables of a store."""
        return table_name(self.relation.name)

    @property
    def key(self) -> tuple[int, ...]:
        """The columns by which a row is found."""
        return tuple(range(len(self.relation.schema)))

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The relation's columns, and the row's value in the lattice."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """How its runs are merged."""

    @property
    def often(self) -> str:
        """How often a stored row is there, in SQL."""
        return f"c{len(self.relation.schema)} % 2"

    def weights(self, values: Values) -> Values:
        """How often each stored row is there, of its values in the lattice."""
        return values % 2

    def whole(self, stored: pa.Table) -> pa.Table:
        """The rows that are there, with their weights, of a table as it is stored."""
        width = len(self.relation.schema)
        weights = pa.array(self.weights(stored.column(f"c{width}").to_numpy()))
        rows = stored.select([f"c{place}" for place in range(width)]).append_column(f"c{width}", weights)
        return rows.filter(pc.greater(weights, 0)).cast(arrow_schema((*self.relation.schema, WEIGHT)))

    @property
    def arrived(self) -> Scan:
        """What has come: rows, and the mark of each (`inbox.Arrival.mark`)."""
        return Scan(f"{self.relation.name}@arrived", (*self.relation.schema, Field("mark", BIGINT)))

    @property
    def found(self) -> Scan:
        """What is stored of that."""
        return Scan(f"{self.name}@found", self.schema)

    def lookups(self) -> list[Lookup]:
        """What is looked up: the keys of what has come."""
        rows = self.arrived
        own = Kept(self.name, rows, len(self.relation.schema), self.key)
        return [Lookup(own, project(rows, [columns(rows)[place] for place in self.key]))]

    def joined(self, come: pa.Table, stored: pa.Table | None, version: int) -> Joined | None:  # noqa: ARG002
        """What is stored anew, as a run, and the change, if there is a shorter way to them than the plans."""
        return None

    @abstractmethod
    def candidates(self) -> Plan | None:
        """All rows that may change, as far as what has come says that; with a weight."""

    @abstractmethod
    def steps(self) -> list[tuple[str, Plan]]:
        """The tables to be made one after the other, of what has come and what was found."""

    @abstractmethod
    def change(self) -> Plan:
        """The rows that appear and disappear, with their weights."""

    @abstractmethod
    def growth(self, version: int) -> Plan:
        """What is stored anew."""
