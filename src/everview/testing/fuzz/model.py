"""What relations hold after a history, kept in the plainest way there is.

A set or add-wins relation holds a row or not; a keyed one the last row of each key; a bag counts copies.
`insert` and `delete` return how many rows appeared or disappeared, as a site does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from everview.language.program import Program
from everview.language.relations import Relation, Semantics

__all__ = ["Model", "Row"]

Row = tuple[Any, ...]


def _key(relation: Relation, row: Row) -> Row:
    return tuple(row[position] for position in relation.key_positions)


class Model:
    """The contents of every relation of a program."""

    def __init__(self, program: Program) -> None:
        self._relations = program.relations
        self.tables: dict[str, Counter[Row]] = {name: Counter() for name in program.relations}

    def rows(self, name: str) -> list[Row]:
        """The rows of a relation, copies repeated."""
        return list(self.tables[name].elements())

    def insert(self, name: str, rows: Sequence[Row]) -> int:
        """Insert rows, one after the other; return how many are there now that were not before."""
        relation, table = self._relations[name], self.tables[name]
        if relation.semantics is Semantics.BAG:
            table.update(rows)
            return len(rows)
        before = set(table)
        for row in rows:
            if relation.semantics is Semantics.KEYED:
                self._drop_key(relation, row)
            table[row] = 1
        return len(set(table) - before)

    def delete(self, name: str, rows: Sequence[Row]) -> int:
        """Delete rows, of a keyed relation by their keys; return how many disappeared."""
        relation, table = self._relations[name], self.tables[name]
        gone = 0
        for row in rows:
            if relation.semantics is Semantics.KEYED:
                gone += self._drop_key(relation, row)
            elif row in table:
                table[row] -= 1
                gone += 1
                if not table[row]:
                    del table[row]
        return gone

    def _drop_key(self, relation: Relation, row: Row) -> int:
        table = self.tables[relation.name]
        same = [other for other in table if _key(relation, other) == _key(relation, row)]
        for other in same:
            del table[other]
        return len(same)
