"""A node: one place of a located program, at its site.

Everything that a node knows lies in relations of the site. What happens to them, by writes here or by a
sync, it hears of after the commit, and answers with one of its own: facts of this place that appeared or
went, and mail for others. Should it be cut off in between, it does the rest when it is opened again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from everview.errors import DataError
from everview.language.program import Program
from everview.language.values import check_rows
from everview.located.facts import Fact, Row
from everview.located.program import LocatedProgram

__all__ = ["Node", "Store", "Subscription"]

Change = tuple[Row, int]


class Subscription(Protocol):
    """What can be cancelled."""

    def cancel(self) -> None:
        """Stop it."""
        ...


class Known(Protocol):
    """A store as others know it."""

    @property
    def incarnation(self) -> str:
        """By what: another one since it was put back from a backup, or copied."""
        ...


class Store(Protocol):
    """What a node needs of a site."""

    @property
    def replica(self) -> Known:
        """The site as other sites see it."""
        ...

    @property
    def program(self) -> Program:
        """What the site runs."""
        ...

    @property
    def name(self) -> str:
        """The site's label."""
        ...

    def insert(self, relation: str, rows: Iterable[Sequence[Any]]) -> int:
        """Insert rows."""
        ...

    def delete(self, relation: str, rows: Iterable[Sequence[Any]]) -> int:
        """Delete rows."""
        ...

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """All rows of a relation."""
        ...

    def query(self, sql: str, params: Sequence[Any] | None = None) -> list[dict[str, Any]]:
        """Run a query."""
        ...

    def transaction(self) -> AbstractContextManager[Any]:
        """Do all, or nothing."""
        ...

    def watch(self, name: str, callback: Callable[[list[Change]], object]) -> Subscription:
        """Tell of what commits change."""
        ...

    def status(self) -> dict[str, Any]:
        """What there is to know about the store."""
        ...


class Node(ABC):
    """What both modes share: writing, reading, and hearing of commits."""

    def __init__(self, site: Store, program: LocatedProgram, place: str, hosted: frozenset[str]) -> None:
        self.place, self.program = place, program
        self._site, self._hosted = site, hosted
        self._derived = [name for name in program.relations if name not in program.rules.base]
        self._current = False
        """Whether what is in memory is what the site holds; after an error it may not be."""
        self._watches = [
            site.watch(self._table(name), partial(self._on_base, name)) for name in sorted(program.rules.base)
        ]

    def _table(self, relation: str) -> str:
        return f"{relation}@{self.place}"

    # Writing.

    def insert(self, relation: str, rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> int:
        """Insert facts that live here into a base relation; return how many appeared."""
        return self._site.insert(self._table(relation), self._own(relation, rows))

    def delete(self, relation: str, rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> int:
        """Delete facts that live here from a base relation; return how many disappeared."""
        return self._site.delete(self._table(relation), self._own(relation, rows))

    def _own(self, relation: str, rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> list[Row]:
        found = self.program.relations.get(relation)
        if found is None or relation not in self.program.rules.base:
            kind = "not in the program" if found is None else "derived by rules, and not written to"
            raise DataError(f"{relation} is {kind}", relation=relation)
        checked = check_rows(relation, found.schema, rows)
        at = self.program.rules.location[relation]
        for row in checked:
            if row[at] != self.place:
                column = found.columns[at]
                raise DataError(
                    f"{relation}{row} lives at {row[at]!r}, and this is {self.place!r}; write it there",
                    relation=relation,
                    column=column,
                    value=row[at],
                )
        return checked

    # Reading.

    def rows(self, relation: str) -> list[Row]:
        """The rows of a relation that live here, sorted."""
        if relation not in self.program.relations:
            raise DataError(f"{relation} is not in the program", relation=relation)
        self.refresh()
        return self._site.rows(self._table(relation))

    # Life.

    def refresh(self) -> None:
        """Take in what the site holds and the node has not heard of; nothing to do, as a rule."""
        if not self._current:
            self._react(self._rebuild)

    def close(self) -> None:
        """Hear of nothing any more; the site stays open."""
        for watch in self._watches:
            watch.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Inside.

    def _react(self, work: Callable[[], None]) -> None:
        """Do something in one transaction; if it fails, everything is read anew the next time."""
        try:
            with self._site.transaction():
                current, self._current = self._current, False
                if not current:
                    self._rebuild()
                if work != self._rebuild:
                    work()
                self._current = True
        except BaseException:
            self._current = False
            raise

    @abstractmethod
    def _rebuild(self) -> None:
        """Read the site's relations, and write what follows from them and is not there."""

    @abstractmethod
    def _write_base(self, fact: Fact, *, present: bool) -> None:
        """A base fact is there now, or not."""

    @abstractmethod
    def _flush(self) -> None:
        """Write what has followed."""

    def _on_base(self, relation: str, changes: list[Change]) -> None:
        def work() -> None:
            # Another thread may have committed since: what counts is what is there now.
            for row in dict.fromkeys(row for row, _ in changes):
                self._write_base((relation, row), present=self._has(relation, row))
            self._flush()

        self._react(work)

    def _base_facts(self) -> list[Fact]:
        return [
            (relation, row)
            for relation in sorted(self.program.rules.base)
            for row in self._site.rows(self._table(relation))
        ]

    def _has(self, relation: str, row: Row) -> bool:
        columns = self.program.relations[relation].columns
        where = " AND ".join(f'"{column}" = ?' for column in columns)
        asked = f'SELECT 1 AS one FROM "{self._table(relation)}" WHERE {where}'  # noqa: S608 - declared names
        return bool(self._site.query(asked, list(row)))

    def _show(self, changes: Mapping[Fact, int]) -> None:
        """Let derived facts appear and go in the site's relations; those that rules send on are not shown."""
        for sign, write in ((1, self._site.insert), (-1, self._site.delete)):
            by_relation: dict[str, list[Row]] = {}
            for (relation, row), change in changes.items():
                if change == sign and relation in self._derived:
                    by_relation.setdefault(relation, []).append(row)
            for relation, rows in by_relation.items():
                write(self._table(relation), rows)

    def _differences(self, rows: Callable[[str], set[Row]]) -> dict[Fact, int]:
        """How the derived facts here differ from those that the site shows."""
        changes: dict[Fact, int] = {}
        for relation in self._derived:
            shown, there = set(self._site.rows(self._table(relation))), rows(relation)
            changes |= {(relation, row): 1 for row in there - shown}
            changes |= {(relation, row): -1 for row in shown - there}
        return changes
