"""Making the stored form of a relation that a program declares."""

from __future__ import annotations

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import internal
from everview.engines.sqlite.circuits.statetable import StateTable
from everview.engines.sqlite.rows.add_wins import AddWinsRows
from everview.engines.sqlite.rows.bags import BagRows
from everview.engines.sqlite.rows.base import TEMPORARY, StoredRows
from everview.engines.sqlite.rows.keyed import KeyedRows
from everview.engines.sqlite.rows.sets import SetRows
from everview.engines.sqlite.rows.taking import TAKING
from everview.language.relations import Relation, Semantics

_KINDS: dict[Semantics, type[StoredRows]] = {
    Semantics.SET: SetRows,
    Semantics.KEYED: KeyedRows,
    Semantics.BAG: BagRows,
    Semantics.ADD_WINS: AddWinsRows,
}


def stored_rows(circuit: Circuit, relation: Relation, name: str) -> StoredRows:
    """Declare the tables, the delta and the scratch tables of a relation under a name."""
    circuit.temporary.update({**TEMPORARY, **TAKING})
    kind, width = _KINDS[relation.semantics], len(relation.schema)
    extra = [kind.extra] if kind.extra else []
    unique = relation.key_positions if relation.semantics is Semantics.KEYED else None
    own = [f"{column} INTEGER NOT NULL" for column in (*extra, "dot", "version")]
    table = StateTable(internal(name), relation.schema, tuple(own), zero="", unique=unique)
    keys = tuple(f"k{place}" for place in range(max(len(table.key()), 1)))
    return kind(
        relation,
        table,
        circuit.scratch(f"d_{name}", width, ("w", *extra, "dot")),
        circuit.scratch(f"o_{name}", width, (*extra, "dot", "version", "old")),
        circuit.scratch(f"k_{name}", 0, (*keys, f"PRIMARY KEY ({', '.join(keys)})")),
    )
