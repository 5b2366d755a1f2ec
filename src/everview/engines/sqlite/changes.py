"""Changes: what a transaction does to the relations and views that somebody watches."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from everview.engines.sqlite.circuits.circuit import Changed, consolidated, live
from everview.engines.sqlite.circuits.select import Select
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.scalars.storage import load_rows

Change = tuple[tuple[Any, ...], int]


@dataclass(slots=True)
class Changes:
    """Sums up the deltas of a transaction's statements, view by view.

    What a statement changed is set aside until `keep` or `drop` says what became of the statement.
    """

    engine: Engine
    _branches: dict[str, list[Select]] = field(default_factory=dict)
    _net: dict[str, Counter[tuple[Any, ...]]] = field(default_factory=dict)
    _new: list[tuple[str, tuple[Any, ...], int]] = field(default_factory=list)

    def follow(self, name: str) -> None:
        """Take notice of a relation or view from now on."""
        if name not in self._branches:
            self._branches[name] = self.engine.nodes[name].delta()

    def unfollow(self, name: str) -> None:
        """Take no more notice of it."""
        self._branches.pop(name, None)

    def collect(self, connection: sqlite3.Connection, changed: Changed) -> None:
        """Add what one statement changed, while its deltas are there."""
        for name, branches in list(self._branches.items()):  # a watch may be cancelled meanwhile
            rows = live(branches, changed)
            if not rows:
                continue
            for *row, weight in connection.execute(consolidated(rows, self.engine.program.schema(name))):
                self._new.append((name, tuple(row), weight))

    def keep(self) -> None:
        """The statement is done."""
        for name, row, weight in self._new:
            self._net.setdefault(name, Counter())[row] += weight
        self._new.clear()

    def drop(self) -> None:
        """The statement was undone."""
        self._new.clear()

    def net(self, name: str) -> list[tuple[tuple[Any, ...], int]]:
        """Return what the transaction has changed so far of one relation or view, as stored rows."""
        self.keep()
        return [(row, weight) for row, weight in self._net.get(name, {}).items() if weight]

    def take(self) -> dict[str, list[Change]]:
        """Return the net changes of the transaction, and begin anew."""
        self.keep()
        taken = {}
        for name, net in self._net.items():
            types = [column.type for column in self.engine.program.schema(name)]
            changes = [(row, weight) for row, weight in net.items() if weight]
            rows = load_rows(types, [row for row, _ in changes])
            taken[name] = [(tuple(row), weight) for row, (_, weight) in zip(rows, changes, strict=True)]
        self.forget()
        return taken

    def forget(self) -> None:
        """Drop what was collected."""
        self._net.clear()
        self._new.clear()
