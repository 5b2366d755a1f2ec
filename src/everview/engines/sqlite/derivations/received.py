"""A received core: the liveness of its inputs and the derivations of its branches, as one stream."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass
from typing import assert_never

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.derivations.add_wins_ids import AddWinsIds
from everview.engines.sqlite.derivations.branches import ReceivedBranch
from everview.engines.sqlite.derivations.keyed_ids import KEY, ROW, KeyedIds
from everview.engines.sqlite.derivations.liveness import Liveness
from everview.engines.sqlite.derivations.set_ids import NumberedSet, SetIds
from everview.engines.sqlite.relations.add_wins import AddWinsRelation
from everview.engines.sqlite.relations.keyed import KeyedRelation
from everview.engines.sqlite.relations.making import lattice
from everview.language.program import Program
from everview.language.relations import Relation, Semantics
from everview.language.types import BIGINT, Field
from everview.planner.cut import Core


@dataclass(frozen=True, slots=True)
class Received:
    """The tables of a core that comes from elsewhere, and how circuits read it."""

    core: Core
    inputs: tuple[Liveness, ...]
    branches: tuple[ReceivedBranch, ...]
    delta: str

    @property
    def parts(self) -> tuple[Liveness | ReceivedBranch, ...]:
        """Liveness first: then the derivations of a cut find their ids."""
        return (*self.inputs, *self.branches)

    def ddl(self) -> list[str]:
        """Return what creates its tables."""
        return [statement for part in self.parts for statement in part.ddl()]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are the truth about this core here."""
        return tuple(table for part in self.parts for table in part.tables)

    def node(self, circuit: Circuit) -> Node:
        """Return how circuits read its rows and their change."""
        names = columns(len(self.core.schema))

        def delta() -> list[Select]:
            circuit.demand(self.delta)
            return [from_table(circuit.names, self.delta, names, weight="w", stored=False, delta=True)]

        def contents() -> list[Select]:
            return [
                from_table(circuit.names, branch.table, names, partial=branch.partial)
                for branch in self.branches
            ]

        return Node(self.core.schema, delta, contents)

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all rows there are into the delta, as if they had just come; return how many."""
        return sum(branch.stage_all(connection) for branch in self.branches)


def received_core(circuit: Circuit, program: Program, core: Core) -> Received:
    """Declare the tables of a core, under names that depend on what it says alone."""
    name = f"x{hashlib.sha256(core.name.encode()).hexdigest()[:12]}"
    width = len(core.schema)
    delta = circuit.scratch(f"d_{name}", width)
    inputs = {
        relation: _liveness(circuit, program.relations[relation], f"{name}_l{number}", delta)
        for number, relation in enumerate(core.inputs)
    }
    branches = []
    for number, branch in enumerate(core.branches):
        own = f"{name}_b{number}"
        numbers = [f"i{position}" for position in range(len(branch.atoms))]
        circuit.states.add(internal(own))
        branches.append(
            ReceivedBranch(
                circuit,
                branch,
                core.schema,
                internal(own),
                tuple(inputs[atom.name] for atom in branch.atoms),
                delta,
                circuit.scratch(f"m_{own}", 0, (*columns(width), *numbers, "dead")),
            )
        )
    return Received(core, tuple(inputs.values()), tuple(branches), delta)


def _liveness(circuit: Circuit, relation: Relation, name: str, delta: str) -> Liveness:
    turned = circuit.scratch(f"t_{name}", 0, ("n INTEGER PRIMARY KEY", "turn"))
    # Under a name of its own: floors and conflicts are the relation's affair, not its ids'.
    told = f"{name}>{relation.name}"
    row = (Field("high", BIGINT, nullable=False), Field("low", BIGINT, nullable=False))
    match relation.semantics:
        case Semantics.SET:
            circuit.scratch(f"a_{name}_grown", 0, ("n", "cl", "site", "seq", "turn"))
            lengths = lattice(circuit, Relation(told, row), name, NumberedSet, numbered=True)
            return SetIds(relation, lengths, turned, delta)
        case Semantics.KEYED:
            made = Relation(told, (*KEY, *ROW), Semantics.KEYED, tuple(field.name for field in KEY))
            register = lattice(circuit, made, name, KeyedRelation, numbered=False)
            return KeyedIds(relation, register, turned, delta)
        case Semantics.ADD_WINS:
            made = Relation(told, row, Semantics.ADD_WINS)
            insertions = lattice(circuit, made, name, AddWinsRelation, numbered=True)
            return AddWinsIds(relation, insertions, turned, delta)
        case Semantics.BAG | Semantics.MERGED | Semantics.GREATEST | Semantics.LEAST:
            raise AssertionError("what a host gets whole is cut at the scan")
        case _:
            assert_never(relation.semantics)
