"""The tables of one recursive relation: its rows with their levels, and what a commit does to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.statetable import StateTable, key_terms, same_row
from everview.language.plan import Schema

LEVEL = "r"
"""The column that says how high a row's proof is: above those of the rows that it was derived from."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The names of a relation's tables; the temporary ones hold every row at most once.

    `number` is the relation's place in its group, which orders rows of one level.
    """

    number: int
    schema: Schema
    state: StateTable
    grown: tuple[str, str]
    """What the last round of growth added, and what the one under way adds: they take turns, the first fills
    the first."""
    doubtful: str
    """Rows that lost a derivation, and may have no other."""
    last: str
    """Rows that the last round of deletion found without support."""
    gone: str
    """All rows that were found so in this commit."""
    change: str
    """How the relation changes, for those who read it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of a row's columns."""
        return columns(len(self.schema))

    def same(self, left: str, right: str) -> str:
        """Return the condition that two aliases have the same row, so that left's row index serves it."""
        return same_row(self.schema, self.of(left), self.of(right))

    def of(self, alias: str) -> tuple[str, ...]:
        """Return the columns under an alias."""
        return tuple(f"{alias}.{column}" for column in self.columns)

    def delete(self, table: str) -> str:
        """Return the statement that takes the rows of a temporary table out of the state."""
        state = self.state.name
        if any(field.nullable for field in self.schema):
            found = f"SELECT s.rowid FROM {table} AS x CROSS JOIN {state} AS s ON {self.same('s', 'x')}"
            return f"DELETE FROM {state} WHERE rowid IN ({found})"
        listed = ", ".join(self.columns)
        row = f"({listed})" if len(self.columns) > 1 else listed
        return f"DELETE FROM {state} WHERE {row} IN (SELECT {listed} FROM {table})"


def declare(circuit: Circuit, name: str, number: int, schema: Schema) -> Tables:
    """Declare the tables of a relation of a group."""
    state = StateTable(internal(name), schema, extras=(f"{LEVEL} INTEGER NOT NULL",), zero="")
    circuit.declare(state)
    if not any(field.nullable for field in schema):
        circuit.rows_by(state.name, state.columns)

    def temporary(letter: str) -> str:
        table = internal(f"{letter}_{name}")
        circuit.temporary[f"temp.{table}"] = _rows_once(table, schema)
        return f"temp.{table}"

    return Tables(
        number,
        schema,
        state,
        grown=(temporary("t"), temporary("u")),
        doubtful=temporary("y"),
        last=temporary("l"),
        gone=temporary("g"),
        change=circuit.scratch(f"d_{name}", schema),
    )


def _rows_once(table: str, schema: Schema) -> str:
    """A temporary table of rows and levels that takes each row once, NULLs being equal."""
    names = columns(len(schema))
    if not any(field.nullable for field in schema):
        listed = ", ".join(f"{name} NOT NULL" for name in names)
        return (
            f"CREATE TEMP TABLE {table} ({listed}, {LEVEL}, PRIMARY KEY ({', '.join(names)})) WITHOUT ROWID"
        )
    keys = [f"k{place}" for place in range(len(schema))]
    made = [f"{key} AS ({term}) VIRTUAL" for key, term in zip(keys, key_terms(schema, names), strict=True)]
    return f"CREATE TEMP TABLE {table} ({', '.join([*names, LEVEL, *made])}, UNIQUE ({', '.join(keys)}))"


def listed(names: Sequence[str]) -> str:
    """Return names with commas between."""
    return ", ".join(names)
