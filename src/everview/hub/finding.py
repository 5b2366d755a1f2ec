"""Kept rows as a recursion finds them by itself: in the files of the last refresh, mapped where it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from everview.engines.spark.types import arrow_schema, column_names
from everview.hub.runs import Layout, Part, distinct
from everview.hub.searching import Open, Request, search
from everview.hub.tables import Hashed
from everview.planner.circuit import Kept

__all__ = ["Finder", "Stored"]

_ALL = -(2**63), 2**63 - 1


class Finder(Protocol):
    """What finds kept rows as they were."""

    def find(self, kept: Kept, keys: pa.Table | None) -> pa.Table:
        """At least the rows of these keys, each once, its sums behind it; None asks for all."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The rows in the parts of runs, by the names of their tables; TooManyError for more than `most`."""

    parts: Callable[[str], tuple[Part, ...]]
    layouts: Mapping[str, Layout]
    hashed: Mapping[str, Hashed]
    opened: Open
    most: int | None = None

    def find(self, kept: Kept, keys: pa.Table | None) -> pa.Table:
        """At least the rows of these keys, each once, its sums behind it; None asks for all."""
        parts, nothing = self.parts(kept.name), arrow_schema(kept.schema).empty_table()
        if not parts or (keys is not None and not keys.num_rows):
            return nothing
        hashes = None
        if keys is not None:
            places = kept.keys or range(kept.width)
            schema = tuple(kept.schema[place] for place in places)
            hashes = distinct(self.hashed[kept.name].of_keys(schema, keys))
        request = Request(parts, self.layouts[kept.name], hashes)
        found = search(request, *_ALL, self.opened, self.most)
        return nothing if found is None else found.select(column_names(len(kept.schema)))
