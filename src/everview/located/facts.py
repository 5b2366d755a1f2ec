"""The rows that one place holds, by relation, with the indexes that its rules look them up by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["Fact", "Facts", "Row"]

Row = tuple[Any, ...]
Fact = tuple[str, Row]

_Positions = tuple[int, ...]


_Set = dict[Row, None]
"""A set in the order in which rows came, so that what follows comes in one order, too."""


class Facts:
    """Sets of rows. An index is asked for when a rule is compiled, and kept from then on."""

    def __init__(self, wanted: Iterable[tuple[str, _Positions]]) -> None:
        self._rows: dict[str, _Set] = {}
        self._indexes: dict[tuple[str, _Positions], dict[Row, _Set]] = {key: {} for key in wanted}
        self._of: dict[str, list[_Positions]] = {}
        for relation, positions in self._indexes:
            self._of.setdefault(relation, []).append(positions)

    def add(self, relation: str, row: Row) -> None:
        """Hold a row; nothing changes if it is held."""
        self._rows.setdefault(relation, {})[row] = None
        for positions in self._of.get(relation, ()):
            key = tuple([row[position] for position in positions])
            self._indexes[relation, positions].setdefault(key, {})[row] = None

    def drop(self, relation: str, row: Row) -> None:
        """Hold a row no longer."""
        self._rows.get(relation, {}).pop(row, None)
        for positions in self._of.get(relation, ()):
            index = self._indexes[relation, positions]
            key = tuple([row[position] for position in positions])
            if (found := index.get(key)) is not None:
                found.pop(row, None)
                if not found:
                    del index[key]

    def rows(self, relation: str) -> Iterable[Row]:
        """All rows of a relation."""
        return self._rows.get(relation, ())

    def find(self, relation: str, positions: _Positions, key: Sequence[Any]) -> Iterable[Row]:
        """The rows that have these values at these positions."""
        if not positions:
            return self._rows.get(relation, ())
        return self._indexes[relation, positions].get(tuple(key), ())
