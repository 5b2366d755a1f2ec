"""From a Fixpoint to nodes: one group of tables and one step for all relations that are defined together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from everview.engines.sqlite.circuits.circuit import Changed, Procedure, Statement, consolidated, live
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.recursion.bundles import bundled
from everview.engines.sqlite.circuits.recursion.rounds import Rounds
from everview.engines.sqlite.circuits.recursion.tables import Tables, declare, listed
from everview.engines.sqlite.circuits.recursion.variants import ClauseVariants, Input
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.errors import ProgramError
from everview.language.plan import Fixpoint, Plan, RecursiveScan, Schema
from everview.language.recursion import NotMonotoneError, group_clauses

if TYPE_CHECKING:
    from everview.engines.sqlite.circuits.compiler import Compiler

_HOW = (
    "by change: what is new derives more, round by round; what earlier rows no longer support goes, and "
    "comes back where others derive it"
)


@dataclass(slots=True)
class Groups:
    """The groups of recursive relations in a circuit; several Fixpoints may show relations of one group."""

    _known: dict[tuple[tuple[str, ...], tuple[Schema, ...], tuple[Plan, ...]], _Group] = field(
        default_factory=dict
    )

    def nodes(self) -> Iterator[tuple[tuple[tuple[str, ...], tuple[Plan, ...]], dict[str, Node]]]:
        """Yield the names and plans of each group, and its nodes."""
        return (((names, plans), group.nodes()) for (names, _, plans), group in self._known.items())

    def faults(self) -> Iterator[str]:
        """Yield what finds rows that nothing earlier supports, or that are derived and not there.

        Where neither finds any, the rows are the least ones that the clauses allow.
        """
        return (sql for group in self._known.values() for sql in group.faults())

    def node(self, compiler: Compiler, plan: Fixpoint) -> Node:
        """Return the node of a Fixpoint."""
        key = plan.names, plan.schemas, plan.plans
        if key not in self._known:
            self._known[key] = _Group(compiler, plan)
        return self._known[key].nodes()[plan.result]


class _Group:
    """A group that is being compiled."""

    def __init__(self, compiler: Compiler, plan: Fixpoint) -> None:
        self._circuit = compiler.circuit
        try:
            clauses = {name: tuple(map(bundled, found)) for name, found in group_clauses(plan).items()}
        except NotMonotoneError as error:
            raise ProgramError(
                f"the recursion over {', '.join(plan.names)} cannot be kept: {error}",
                hint="let it read a view that is not part of the recursion",
            ) from None
        number = compiler.number()
        self._tables: dict[str, Tables] = {
            name: declare(self._circuit, f"f{number}_{place}", place, schema)
            for place, (name, schema) in enumerate(zip(plan.names, plan.schemas, strict=True))
        }
        self._inputs: dict[Plan, Input] = {}
        for found in clauses.values():
            for clause in found:
                for part in (*clause.atoms, *(absence.plan for absence in clause.absences)):
                    if not isinstance(part, RecursiveScan) and part not in self._inputs:
                        node = compiler.readable(part)
                        change = self._circuit.scratch(f"x_f{number}_i{len(self._inputs)}", part.schema)
                        self._inputs[part] = Input(node, change, node.delta())
        self._negates = any(clause.absences for found in clauses.values() for clause in found)
        self._variants = [
            (name, ClauseVariants(self._circuit, clause, self._tables[name], self._tables, self._inputs))
            for name, found in clauses.items()
            for clause in found
        ]
        self._step()

    def nodes(self) -> dict[str, Node]:
        return {name: self._node(table) for name, table in self._tables.items()}

    def faults(self) -> Iterator[str]:
        for name, table in self._tables.items():
            alias = self._circuit.names.alias()
            unsupported = self._unsupported(name, alias) or " AND 1"
            yield f"SELECT {listed(table.of(alias))} FROM {table.state.name} AS {alias} WHERE 1{unsupported}"
        yield from (sql for _, variant in self._variants for sql in variant.missing())

    def _unsupported(self, name: str, alias: str) -> str:
        found = (sql for owner, v in self._variants if owner == name for sql in v.support(alias))
        return "".join(f" AND NOT {sql}" for sql in found)

    def _node(self, table: Tables) -> Node:
        circuit = self._circuit

        def delta() -> list[Select]:
            circuit.demand(table.change)
            return [
                from_table(circuit.names, table.change, table.columns, weight="w", stored=False, delta=True)
            ]

        def contents() -> list[Select]:
            return [from_table(circuit.names, table.state.name, table.columns)]

        return Node(table.schema, delta, contents, is_set=True)

    def _step(self) -> None:
        branches = [branch for source in self._inputs.values() for branch in source.deltas]
        first, *others = self._tables.values()
        self._circuit.step(
            "recursion",
            _HOW,
            branches,
            self._statements,
            makes=first.change,
            table=first.state.name,
            grows=not self._negates,
            also=[name for table in others for name in (table.change, table.state.name)],
        )
        # All statements are made once, so that they ask for the indexes they need.
        self._statements(Changed(frozenset().union(*(branch.needs for branch in branches))))

    def _statements(self, changed: Changed) -> list[Statement | Procedure]:
        nets: list[tuple[str, str]] = []
        for plan, source in self._inputs.items():
            parts = live(source.deltas, changed)
            if parts:
                rows = consolidated(parts, plan.schema)
                nets.append((f"INSERT INTO {source.change} {rows}", source.change))
        touched = frozenset(table for _, table in nets)
        variants = [variant for _, variant in self._variants]
        return [
            Rounds(
                tables=list(self._tables.values()),
                nets=nets,
                doubts=[sql for v in variants for sql in v.doubts(touched)],
                doubts_of=[sql for v in variants for sql in v.doubts_of()],
                judgements=[self._judgement(name, table) for name, table in self._tables.items()],
                returns=[sql for v in variants for sql in v.returns()],
                seeds=[sql for v in variants for sql in v.seeds(touched)],
                grows=[[sql for v in variants for sql in v.grows(turn)] for turn in (0, 1)],
                read=frozenset(
                    table.change for table in self._tables.values() if table.change in self._circuit.demanded
                ),
                negates=self._negates,
            )
        ]

    def _judgement(self, name: str, table: Tables) -> str:
        """Of the doubtful rows that are still there, those that nothing earlier supports."""
        alias = self._circuit.names.alias()
        names = listed((*table.columns, "r"))
        shown = listed((*table.of(alias), f"{alias}.r"))
        return (
            f"INSERT INTO {table.last} ({names}) SELECT {shown} FROM {table.doubtful} AS y "
            f"CROSS JOIN {table.state.name} AS {alias} WHERE {table.same(alias, 'y')}"
            f"{self._unsupported(name, alias)}"
        )
