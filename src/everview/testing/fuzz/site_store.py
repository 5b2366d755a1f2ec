"""A site under test: besides its rows, the order they come in, what `query` says, and what `watch` told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.site import Change, Site
from everview.testing.fuzz.model import Row

__all__ = ["SiteStore"]


class SiteStore:
    """A site in memory, or in a file, all of whose relations and views are watched."""

    def __init__(self, program: Program, path: str = ":memory:") -> None:
        self._site = Site.open(path, program, name="fuzz")
        self._faults: list[str] = []
        self._told: dict[str, Counter[str]] = {}
        for name in program.names():
            self._told[name] = Counter(map(repr, self._site.rows(name)))
            self._site.watch(name, partial(self._hear, name))

    def _hear(self, name: str, changes: list[Change]) -> None:
        if not changes or any(weight == 0 for _, weight in changes):
            self._faults.append(f"watch({name}) told of nothing: {changes}")
        if len({repr(row) for row, _ in changes}) < len(changes):
            self._faults.append(f"watch({name}) told of a row twice: {changes}")
        for row, weight in changes:
            self._told[name][repr(row)] += weight

    def together(self) -> AbstractContextManager[object]:
        """A transaction."""
        return self._site.transaction()

    def insert(self, relation: str, rows: Sequence[Row]) -> int:
        """Insert rows; return how many appeared."""
        return self._site.insert(relation, rows)

    def delete(self, relation: str, rows: Sequence[Row]) -> int:
        """Delete rows; return how many disappeared."""
        return self._site.delete(relation, rows)

    def rows(self, name: str) -> Sequence[Row]:
        """The rows, in the site's order."""
        rows = self._site.rows(name)
        if repr(rows) != repr(sorted_rows(rows)):
            self._faults.append(f"rows({name}) are not sorted: {rows}")
        queried = [tuple(row.values()) for row in self._site.query(f"SELECT * FROM {name}")]
        for what, other in (("query", Counter(map(repr, queried))), ("watch", self._told[name])):
            if +other != Counter(map(repr, rows)):
                self._faults.append(f"{what}({name}) makes it {dict(other)}, but rows are {rows}")
        return rows

    def faults(self) -> list[str]:
        """What was noticed since the last question."""
        found, self._faults = self._faults, []
        return found

    def close(self) -> None:
        """Close the site."""
        self._site.close()
