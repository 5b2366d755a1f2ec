"""What is under test: anything that takes writes and shows relations and views."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Protocol

from everview.engines.sqlite.circuits import totals
from everview.engines.sqlite.circuits.circuit import Strategy
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.rows import digests
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.ledger import LEDGER_DDL, Ledger
from everview.engines.sqlite.scalars import functions
from everview.engines.sqlite.scalars.storage import load_rows, store_rows
from everview.language.program import Program
from everview.testing.fuzz.model import Row

__all__ = ["ANEW", "BY_CHANGE", "BY_SIZE", "EngineStore", "Store"]


class Store(Protocol):
    """A program in operation."""

    def together(self) -> AbstractContextManager[object]:
        """What is written inside is one statement."""

    def insert(self, relation: str, rows: Sequence[Row]) -> int:
        """Insert rows; return how many appeared."""

    def delete(self, relation: str, rows: Sequence[Row]) -> int:
        """Delete rows; return how many disappeared."""

    def rows(self, name: str) -> Sequence[Row]:
        """The rows of a relation or view, copies repeated, in any order."""

    def faults(self) -> list[str]:
        """What is wrong inside, apart from the contents."""

    def close(self) -> None:
        """Let go of everything."""


BY_SIZE = Strategy()
"""What a site does."""
BY_CHANGE = Strategy(many=1, anew=0)
"""Every delta is taken for a large one."""
ANEW = Strategy(many=1, anew=math.inf)
"""Whatever can be computed anew is."""


@lru_cache(maxsize=2)
def _compiled(program: Program, strategy: Strategy) -> Engine:
    """The engine of a program; several histories in turn run on one."""
    engine = Engine(program)
    engine.circuit.strategy = strategy
    return engine


class EngineStore:
    """The circuits of a program on a SQLite database in memory, without a site around them.

    Histories are too short for sizes to matter, so a strategy is given that takes them for large.
    """

    def __init__(self, program: Program, strategy: Strategy = BY_SIZE) -> None:
        self._program = program
        self._engine = _compiled(program, strategy)
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._version = 0
        self._faults: list[str] = []
        functions.register(self._connection, lambda _what: None)
        totals.register(self._connection, lambda _what: None)
        digests.register(self._connection)
        self._engine.prepare(self._connection)
        self._ledger = Ledger()
        self._connection.execute("BEGIN")
        for statement in (*LEDGER_DDL, *self._engine.relation_ddl()):
            self._connection.execute(statement)
        self._truth = self._named()
        self._engine.create_views(self._connection)

    def _named(self) -> set[tuple[str, str]]:
        found = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
        return set(self._connection.execute(found))

    def remake(self) -> None:
        """Drop all views with what keeps them, and make them over the rows that there are."""
        for kind in ("view", "index", "table"):
            for _, name in [one for one in self._named() - self._truth if one[0] == kind]:
                self._connection.execute(f'DROP {kind} "{name}"')
        self._engine.create_views(self._connection)

    def together(self) -> AbstractContextManager[object]:
        """Every write is carried through at once; nothing is to be done before or after."""
        return nullcontext()

    def insert(self, relation: str, rows: Sequence[Row]) -> int:
        """Insert rows; return how many appeared."""
        return self._engine.insert(self._connection, relation, self._stored(relation, rows), self._commit())

    def delete(self, relation: str, rows: Sequence[Row]) -> int:
        """Delete rows; return how many disappeared."""
        return self._engine.delete(self._connection, relation, self._stored(relation, rows), self._commit())

    def _commit(self) -> Commit:
        self._version += 1
        return Commit(self._version, self._ledger, stamp=self._version)

    def _stored(self, relation: str, rows: Sequence[Row]) -> Sequence[Row]:
        return store_rows([f.type for f in self._program.schema(relation)], rows)

    def rows(self, name: str) -> Sequence[Row]:
        """The rows of a relation or view, copies repeated, in any order."""
        stored: list[Row] = []
        for select in self._engine.contents(name):
            for *row, weight in self._connection.execute(select.sql()):
                if weight < 1:
                    self._faults.append(f"{name} keeps {row} with weight {weight}")
                stored += [tuple(row)] * weight
        return load_rows([f.type for f in self._program.schema(name)], stored)

    def faults(self) -> list[str]:
        """Temporary tables that still have rows, and stored rows that are not there."""
        found, self._faults = self._faults, []
        for table in self._engine.circuit.temporary:
            if self._connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()[0]:
                found.append(f"{table} still has rows")
        return found

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
