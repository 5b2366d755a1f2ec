"""A received core: its hollow inputs, and the derivations of its branches that join."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import column, columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Condition, Select, from_table
from everview.engines.sqlite.derived.hollow import HollowRows, hollow_rows
from everview.engines.sqlite.derived.joined import JoinedRows
from everview.engines.sqlite.derived.reduced import Payload, Reduced
from everview.language.program import Program
from everview.planner.cut import Core


@dataclass(frozen=True, slots=True)
class ReceivedCore:
    """The tables of a core that comes from elsewhere, and how circuits read it."""

    core: Core
    inputs: tuple[HollowRows, ...]
    joins: tuple[JoinedRows, ...]
    delta: str
    """Temporary: what changes in the rows of branches that join."""

    @property
    def deltas(self) -> tuple[str, ...]:
        """The temporary tables with what changes in its rows."""
        return (*(hollow.delta for hollow in self.inputs), self.delta)

    @property
    def payloads(self) -> Iterator[tuple[HollowRows, Payload]]:
        """The branches over one relation."""
        return ((hollow, payload) for hollow in self.inputs for payload in hollow.reduced.payloads)

    def ddl(self) -> list[str]:
        """Return what creates its tables."""
        return [statement for part in self._parts for statement in part.ddl()]

    @property
    def _parts(self) -> list[HollowRows | JoinedRows]:
        return [*self.inputs, *self.joins]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are the truth about this core here."""
        return (*(t for hollow in self.inputs for t in hollow.tables), *(join.table for join in self.joins))

    def node(self, circuit: Circuit) -> Node:
        """Return how circuits read its rows and their change."""
        names = columns(len(self.core.schema))

        def delta() -> list[Select]:
            alone = [_payload(circuit, h.delta, p, "", delta=True) for h, p in self.payloads]
            if not self.joins:
                return alone
            joined = from_table(circuit.names, self.delta, names, weight="w", stored=False, delta=True)
            return [*alone, joined]

        def contents() -> list[Select]:
            alone = [_payload(circuit, h.table.name, p, h.partial, delta=False) for h, p in self.payloads]
            joined = [from_table(circuit.names, j.table, names, partial=j.partial) for j in self.joins]
            return [*alone, *joined]

        return Node(self.core.schema, delta, contents)

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all rows there are into the deltas, as if they had just come; return how many."""
        return sum(part.stage_all(connection) for part in self._parts)

    def faults(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Yield what is wrong with derivations, for a person: nothing should be."""
        return (fault for join in self.joins for fault in join.faults(connection))

    # Telling others.

    @property
    def runs(self) -> tuple[JoinedRows, ...]:
        """One for each branch that joins."""
        return self.joins

    def has_news(self, connection: sqlite3.Connection, since: int) -> bool:
        """Whether derivations have come since a version."""
        return any(join.newest(connection) > since for join in self.joins)

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Create the indexes by which news is found."""
        for join in self.joins:
            for statement in join.version_ddl():
                connection.execute(statement)


def _payload(circuit: Circuit, table: str, payload: Payload, partial: str, *, delta: bool) -> Select:
    """Read the rows of a branch out of those of its input."""
    cells = [column(place) for place in payload.cells]
    flag = [] if payload.flag is None else [column(payload.flag)]
    weight = "w" if delta else "1"
    found = from_table(
        circuit.names, table, [*cells, *flag], weight=weight, stored=not delta, delta=delta, partial=partial
    )
    if flag:
        found = found.filter(Condition(found.columns[-1]))
    return found.project(found.columns[: len(cells)])


def received_core(circuit: Circuit, program: Program, core: Core) -> ReceivedCore:
    """Declare the tables of a core, under names that depend on what it says alone."""
    name = f"x{hashlib.sha256(core.name.encode()).hexdigest()[:12]}"
    inputs = {
        relation: hollow_rows(circuit, Reduced(core, program.relations[relation]), f"{name}_h{number}")
        for number, relation in enumerate(core.inputs)
    }
    most = max((len(branch.atoms) for branch in core.branches), default=0)
    names = (f"n{position}" for position in range(most))
    delta = circuit.scratch(f"d_{name}", core.schema, ("w", *names))
    joins = []
    for number, branch in enumerate(core.branches):
        if len(branch.atoms) > 1:
            table = internal(f"{name}_b{number}")
            circuit.states.add(table)
            positions = tuple(inputs[atom.name] for atom in branch.atoms)
            joins.append(JoinedRows(number, branch, core.schema, table, delta, positions))
    return ReceivedCore(core, tuple(inputs.values()), tuple(joins), delta)
