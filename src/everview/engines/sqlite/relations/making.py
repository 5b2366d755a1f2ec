"""Making the stored form of a relation that a program declares."""

from __future__ import annotations

from typing import TypeVar

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.statetable import StateTable
from everview.engines.sqlite.relations.add_wins import AddWinsRelation
from everview.engines.sqlite.relations.bags import BagRelation
from everview.engines.sqlite.relations.base import StoredRelation
from everview.engines.sqlite.relations.keyed import KeyedRelation
from everview.engines.sqlite.relations.sets import SetRelation
from everview.errors import ProgramError
from everview.language.relations import Relation, Semantics

Stored = TypeVar("Stored", bound=StoredRelation)

_ORIGIN = ("version INTEGER NOT NULL", "site INTEGER NOT NULL", "seq INTEGER NOT NULL")

_KINDS: dict[Semantics, tuple[type[StoredRelation], tuple[str, ...], tuple[str, ...]]] = {
    Semantics.SET: (SetRelation, ("cl INTEGER NOT NULL", *_ORIGIN), ("cl", "site", "seq")),
    Semantics.KEYED: (
        KeyedRelation,
        ("alive INTEGER NOT NULL", "stamp INTEGER NOT NULL", *_ORIGIN),
        ("alive", "stamp", "site", "seq"),
    ),
    Semantics.BAG: (BagRelation, ("w INTEGER NOT NULL",), ("w", "isite", "iseq")),
    Semantics.ADD_WINS: (
        AddWinsRelation,
        ("w INTEGER NOT NULL",),
        ("cl", "isite", "iseq", "site", "seq"),
    ),
}
"""Kind → its class, the columns beside the row in its table, and those beside the row when it travels."""


def stored_relation(circuit: Circuit, relation: Relation, number: int) -> StoredRelation:
    """Declare the tables and the delta of a relation."""
    if relation.semantics not in _KINDS:
        raise ProgramError(f"{relation.name}: WITH (merge = …) needs a store of rows under dots")
    kind, _, _ = _KINDS[relation.semantics]
    numbered = relation.semantics in (Semantics.BAG, Semantics.ADD_WINS)
    return lattice(circuit, relation, f"r{number}", kind, numbered=numbered)


def lattice(circuit: Circuit, relation: Relation, name: str, kind: type[Stored], *, numbered: bool) -> Stored:
    """Declare the tables and the delta of a lattice over rows like a relation's."""
    width = len(relation.schema)
    _, extras, travelling = _KINDS[relation.semantics]
    delta = circuit.scratch(f"d_{name}", width)
    scratch = circuit.scratch(f"o_{name}", width)
    arrived = circuit.scratch(f"a_{name}", width, travelling)
    key: tuple[str, ...] = columns(width) or ("one",)
    if relation.semantics is Semantics.KEYED:
        key = tuple(columns(width)[position] for position in relation.key_positions)
    elif relation.semantics is not Semantics.SET:
        key = ("row", "isite", "iseq")
        circuit.scratch(f"a_{name}_sums", 0, ("row", "w"))
    places = tuple(f"k{place}" for place in range(len(key)))
    value = ("value",) if relation.semantics in (Semantics.SET, Semantics.KEYED) else ()
    kept = circuit.scratch(f"k_{name}", 0, (*places, *value, f"PRIMARY KEY ({', '.join(places)})"))
    unique = relation.key_positions if relation.semantics is Semantics.KEYED else None
    table = StateTable(internal(name), relation.schema, extras, zero="", unique=unique, numbered=numbered)
    return kind(relation, table, delta, scratch, arrived, kept)
