"""Trials: what a deletion would do to the views, found out by doing it and undoing it.

So it is right for every view, whatever it is made of: a row that stands on other rows as well stays, an
aggregate changes, and a row that only the deleted one kept away appears. Neither the owner of the row nor the
door of a windowed relation is asked, for nothing is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from everview.engines.sqlite.circuits.circuit import Changed, consolidated, live
from everview.engines.sqlite.scalars.storage import load_rows, store_rows
from everview.engines.sqlite.store import MEMORY, Store
from everview.engines.sqlite.writing import Writing
from everview.language.plan import Schema
from everview.language.program import Program
from everview.language.relations import Relation

__all__ = ["Turn", "deletion", "stand_in"]

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """How many rows of a relation or view would go and come, and the first of each."""

    vanished: int
    appeared: int
    rows: tuple[tuple[Row, int], ...]
    """With the weight of each, below 0 for one that goes; those that go come first."""


class _UndoneError(Exception):
    """Ends a trial."""


def deletion(
    writing: Writing, relation: Relation, row: Row, names: Iterable[str], most: int = 100
) -> dict[str, Turn]:
    """What deleting a row would change in these relations and views, up to `most` rows of each told."""
    store, turns = writing.store, dict[str, Turn]()
    engine = store.engine
    (stored,) = store_rows([f.type for f in relation.schema], [row])
    with store.exclusive():
        branches = {name: engine.nodes[name].delta() for name in names}

        def look(connection: sqlite3.Connection, changed: Changed) -> None:
            for name, parts in branches.items():
                rows = live(parts, changed)
                if rows:
                    schema = engine.program.schema(name)
                    turn = _turn(connection, consolidated(rows, schema), schema, most)
                    if turn.vanished or turn.appeared:
                        turns[name] = turn

        with suppress(_UndoneError), writing.transaction(), store.explained("tried"):
            engine.delete(store.writer.connection, relation.name, [stored], writing.commit, look)
            raise _UndoneError
    return turns


def _turn(connection: sqlite3.Connection, rows: str, schema: Schema, most: int) -> Turn:
    gone, come = connection.execute(
        f"SELECT ifnull(-sum(min(w, 0)), 0), ifnull(sum(max(w, 0)), 0) FROM ({rows})"
    ).fetchone()
    found = []
    for sign in ("<", ">"):
        order = ", ".join(str(place + 1) for place in range(len(schema)))
        first = f"SELECT * FROM ({rows}) WHERE w {sign} 0 ORDER BY {order} LIMIT {int(most)}"
        found += connection.execute(first).fetchall()
    values = load_rows([f.type for f in schema], [one[:-1] for one in found])
    told = zip(map(tuple, values), (one[-1] for one in found), strict=True)
    return Turn(gone, come, tuple(told))


def stand_in(program: Program, name: str, rows: Mapping[str, Sequence[Row]]) -> Writing:
    """A store in memory with these rows, on which to try what cannot be tried where they are."""
    store = Store(MEMORY, program, name)
    writing = Writing(store)
    with writing.transaction():
        for relation, found in rows.items():
            if found:
                types = [f.type for f in program.relations[relation].schema]
                stored = store_rows(types, found)
                store.engine.insert(store.writer.connection, relation, stored, writing.commit)
    return writing
