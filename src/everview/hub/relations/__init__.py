"""The relations of a hub, one file a kind."""

from typing import assert_never

from everview.errors import ProgramError
from everview.hub.relations.bags import BagTable
from everview.hub.relations.base import LatticeTable, table_name
from everview.hub.relations.keyed import KeyedTable
from everview.hub.relations.sets import SetTable
from everview.language.relations import Relation, Semantics

__all__ = ["LatticeTable", "lattice_table", "table_name"]


def lattice_table(relation: Relation) -> LatticeTable:
    """How a hub stores a relation."""
    match relation.semantics:
        case Semantics.SET | Semantics.ADD_WINS:
            return SetTable(relation)
        case Semantics.KEYED:
            return KeyedTable(relation)
        case Semantics.BAG:
            return BagTable(relation)
        case Semantics.MERGED | Semantics.GREATEST | Semantics.LEAST:
            raise ProgramError(
                f"{relation.name} is declared WITH (merge = …), and a hub does not merge rows",
                hint="keep it at sites, or leave merge out: then the last writer of a row wins",
            )
        case _:
            assert_never(relation.semantics)
