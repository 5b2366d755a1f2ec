"""Ids of tuples: 16 bytes outside, two integers in a store.

SQLite compares integers two or three times as fast as blobs, and Python makes them of a whole table of ids at
once. A message tells every id once, in such a table; its columns of ids are places in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from everview.language.identity import ID_BYTES

_PAIR = struct.Struct("<qq")


def halves(id_: bytes) -> tuple[int, int]:
    """Return an id as two integers."""
    high, low = _PAIR.unpack(id_)
    return high, low


def joined(high: int, low: int) -> bytes:
    """Return the id of two integers."""
    return _PAIR.pack(high, low)


class IdTable:
    """Ids end to end."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data) // ID_BYTES

    @cached_property
    def highs(self) -> tuple[int, ...]:
        """The first integer of each."""
        return self._integers[0::2]

    @cached_property
    def lows(self) -> tuple[int, ...]:
        """The second integer of each."""
        return self._integers[1::2]

    @cached_property
    def _integers(self) -> tuple[int, ...]:
        return struct.unpack(f"<{2 * len(self)}q", self.data)


class Ids(Sequence[bytes]):  # noqa: PLW1641 - a column is no key
    """A column of ids: places in a table."""

    __slots__ = ("_begin", "places", "table")

    def __init__(self, table: IdTable, places: Sequence[int]) -> None:
        self.table, self.places = table, places
        self._begin: bool | None = None

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Ids: ...
    def __getitem__(self, index: int | slice) -> bytes | Ids:
        if isinstance(index, slice):
            return Ids(self.table, self.places[index])
        start = self.places[index] * ID_BYTES
        return self.table.data[start : start + ID_BYTES]

    def __iter__(self) -> Iterator[bytes]:
        data = self.table.data
        return (data[place * ID_BYTES : (place + 1) * ID_BYTES] for place in self.places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"Ids({list(self)})"

    def begin_the_table(self) -> bool:
        """Whether these are the first ids of the table, in its order: as a rule those of the first column."""
        if self._begin is None:
            self._begin = self.places == list(range(len(self.places)))
        return self._begin

    def halves(self) -> tuple[Sequence[int], Sequence[int]]:
        """The first and the second integer of each."""
        highs, lows = self.table.highs, self.table.lows
        if self.begin_the_table():
            return highs[: len(self)], lows[: len(self)]
        return list(map(highs.__getitem__, self.places)), list(map(lows.__getitem__, self.places))


def ids_of(column: Sequence[bytes]) -> Ids:
    """Return ids as a column of places."""
    if isinstance(column, Ids):
        return column
    table = {id_: place for place, id_ in enumerate(dict.fromkeys(column))}
    return Ids(IdTable(b"".join(table)), list(map(table.__getitem__, column)))


def halved(column: Sequence[bytes | None]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return a column of ids as two of integers; both are NULL where there is no id."""
    if isinstance(column, Ids):
        return column.halves()
    present = [id_ for id_ in column if id_ is not None]
    integers = struct.unpack(f"<{2 * len(present)}q", b"".join(present))
    if len(present) == len(column):
        return integers[0::2], integers[1::2]
    pairs = iter(zip(integers[0::2], integers[1::2], strict=True))
    both = [(None, None) if id_ is None else next(pairs) for id_ in column]
    return [high for high, _ in both], [low for _, low in both]
