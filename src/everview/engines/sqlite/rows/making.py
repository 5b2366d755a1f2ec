"""Making the stored form of a relation that a program declares."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import internal
from everview.engines.sqlite.circuits.statetable import StateTable
from everview.engines.sqlite.rows.add_wins import AddWinsRows
from everview.engines.sqlite.rows.bags import BagRows
from everview.engines.sqlite.rows.base import TEMPORARY, StoredRows
from everview.engines.sqlite.rows.extremes import GreatestRows, LeastRows
from everview.engines.sqlite.rows.keyed import KeyedRows
from everview.engines.sqlite.rows.lattices import Join, LatticeRows
from everview.engines.sqlite.rows.merged import MergedRows
from everview.engines.sqlite.rows.permits import PERMITS
from everview.engines.sqlite.rows.sets import SetRows
from everview.engines.sqlite.rows.taking import TAKING
from everview.language.relations import Relation, Semantics

_KINDS: dict[Semantics, type[StoredRows]] = {
    Semantics.SET: SetRows,
    Semantics.KEYED: KeyedRows,
    Semantics.BAG: BagRows,
    Semantics.ADD_WINS: AddWinsRows,
    Semantics.MERGED: MergedRows,
    Semantics.GREATEST: GreatestRows,
    Semantics.LEAST: LeastRows,
}

Kind = TypeVar("Kind", bound=StoredRows)


def stored_rows(circuit: Circuit, relation: Relation, name: str) -> StoredRows:
    """Declare the tables, the delta and the scratch tables of a relation under a name."""
    return _declared(circuit, relation, name, _KINDS[relation.semantics])


def lattice_rows(circuit: Circuit, relation: Relation, name: str, join: Join) -> LatticeRows:
    """Declare a relation of lattice values: keyed, with one BLOB besides, and how two of them are joined."""
    return replace(_declared(circuit, relation, name, LatticeRows), join=join)


def _declared(circuit: Circuit, relation: Relation, name: str, kind: type[Kind]) -> Kind:
    circuit.temporary.update({**TEMPORARY, **TAKING, **PERMITS})
    extra = kind.extras_of(relation)
    unique = relation.key_positions if relation.is_keyed else None
    own = [f"{column} {kind.extra_type}" for column in extra]
    own += ["dot INTEGER", "version INTEGER NOT NULL"]
    table = StateTable(
        internal(name), relation.schema, tuple(own), zero="", unique=unique, dotted=kind.is_dotted
    )
    keys = tuple(f"k{place}" for place in range(max(len(table.key()), 1)))
    return kind(
        relation,
        table,
        circuit.scratch(f"d_{name}", relation.schema, ("w", *extra, "dot")),
        circuit.scratch(f"o_{name}", relation.schema, (*extra, "dot", "version", "old")),
        circuit.scratch(f"k_{name}", (), (*keys, f"PRIMARY KEY ({', '.join(keys)})")),
    )
