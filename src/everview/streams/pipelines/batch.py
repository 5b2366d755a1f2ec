"""Batch: elements on their way from one stage to the next, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from everview.errors import DataError


class Batch:
    """Elements, and how often each comes; below 0 it goes. Without weights each comes once.

    Events of a source may be given in columns, lists or Arrow's: what only looks at one column then makes no
    rows, and no list of another column.
    """

    __slots__ = ("_columns", "_elements", "from_json", "values", "weights")

    def __init__(
        self,
        elements: list[Any] | None = None,
        *,
        columns: Mapping[str, Any] | None = None,
        values: Any = None,
        weights: list[int] | None = None,
        from_json: bool = False,
    ) -> None:
        self._elements = elements
        self._columns = dict(columns) if columns is not None else None
        self.values = values
        """The elements as an array of Arrow's, where they are one."""
        self.weights = weights
        self.from_json = from_json
        """Whether the elements came out of JSON, so that nothing but plain values is in them."""

    def elements(self) -> list[Any]:
        """Return the elements; of columns, a dict for each row."""
        if self._elements is None and self.values is not None:
            self._elements = self.values.to_pylist()
        if self._elements is None:
            columns = {name: self.column(name) for name in self._columns or {}}
            names = tuple(columns)
            self._elements = [
                dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
        return self._elements

    def arrow(self, name: str) -> Any:
        """Return one field of every element as an array of Arrow's; None where it is not one."""
        found = (self._columns or {}).get(name)
        return None if isinstance(found, list) else found

    def column(self, name: str) -> Sequence[Any]:
        """Return one field of every element."""
        if self._columns is not None and name in self._columns:
            found = self._columns[name]
            if not isinstance(found, list):
                found = self._columns[name] = found.to_pylist()
            return found  # type: ignore[no-any-return]
        try:
            return [element[name] for element in self.elements()]
        except (KeyError, TypeError, IndexError):
            lacking = next((e for e in self.elements() if not isinstance(e, Mapping) or name not in e), None)
            raise DataError(
                f"an element has no field {name!r}: {_shown(lacking)}", column=name, value=lacking
            ) from None

    def __len__(self) -> int:
        if self._elements is not None:
            return len(self._elements)
        if self.values is not None:
            return len(self.values)
        return len(next(iter((self._columns or {}).values()), ()))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
