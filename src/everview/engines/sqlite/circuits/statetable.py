"""State tables: where an operator keeps what it must remember between commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.plan import Schema
from everview.language.types import Field, Kind


@dataclass(frozen=True, slots=True)
class StateTable:
    """A table of rows, each at most once, with further columns that say something about the row.

    SQLite's unique indexes take NULLs for different, and rows do not: a nullable column enters the key
    with a stand-in that no value of its type is equal to. Without nullable columns the table is its own
    key's tree, which saves a second copy of every row.
    """

    name: str
    schema: Schema
    extras: tuple[str, ...] = ("w INTEGER NOT NULL",)
    zero: str = "w"
    """The column whose 0 marks a row that is to be removed; none where rows stay."""
    unique: tuple[int, ...] | None = None
    """The positions that tell rows apart, where it does not take all of them."""
    dotted: bool = False
    """Whether the rows lie in the order of their dots, a further column; indexes are short then."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the row's columns."""
        return columns(len(self.schema))

    @property
    def extra_names(self) -> tuple[str, ...]:
        """The names of the further columns."""
        return tuple(extra.split()[0] for extra in self.extras)

    def key(self) -> tuple[str, ...]:
        """Return the SQL terms that are equal exactly when rows are the same."""
        if self.unique is not None:
            return tuple(self.columns[position] for position in self.unique)
        return key_terms(self.schema, self.columns)

    def ddl(self) -> list[str]:
        """Return what creates the table and its own indexes."""
        fields = [
            f"{column} {column_type(field.type)}{'' if field.nullable else ' NOT NULL'}"
            for column, field in zip(self.columns, self.schema, strict=True)
        ]
        if self.dotted:
            return self._dotted_ddl(fields)
        if self.unique is not None:
            return [self._keyed_ddl()]
        dead = [f"CREATE INDEX {self.name}_zero ON {self.name} ({self.zero}) WHERE {self.zero} = 0"]
        if not self.zero:
            dead = []
        if not self.schema:
            only = ["one INTEGER PRIMARY KEY", *self.extras]
            return [f"CREATE TABLE {self.name} ({', '.join(only)})"]
        if any(field.nullable for field in self.schema):
            return [
                f"CREATE TABLE {self.name} ({', '.join([*fields, *self.extras])})",
                f"CREATE UNIQUE INDEX {self.name}_row ON {self.name} ({', '.join(self.key())})",
                *dead,
            ]
        primary = f"PRIMARY KEY ({', '.join(self.columns)})"
        return [
            f"CREATE TABLE {self.name} ({', '.join([*fields, *self.extras, primary])}) WITHOUT ROWID",
            *dead,
        ]

    def _dotted_ddl(self, fields: Sequence[str]) -> list[str]:
        """Rows that arrive are mostly the newest: they go to the end of the table."""
        extras = [extra for extra in self.extras if extra.split()[0] != "dot"]
        listed = ", ".join(["dot INTEGER PRIMARY KEY", *fields, *extras])
        key = ", ".join(self.key()) or "dot * 0"
        return [
            f"CREATE TABLE {self.name} ({listed})",
            f"CREATE UNIQUE INDEX {self.name}_row ON {self.name} ({key})",
        ]

    def _keyed_ddl(self) -> str:
        """A table with a key of its own: the other columns are empty in a row that only says it is gone."""
        fields = [f"{c} {column_type(f.type)}" for c, f in zip(self.columns, self.schema, strict=True)]
        primary = f"PRIMARY KEY ({', '.join(self.key())})"
        return f"CREATE TABLE {self.name} ({', '.join([*fields, *self.extras, primary])}) WITHOUT ROWID"

    def upsert(self, rows: str, updates: Sequence[str], *, unless: str = "") -> str:
        """Return the statement that adds rows, given with their extras, to those there are.

        A row that is there stays as it is where `unless`, a condition on it, is true.
        """
        if not self.schema:  # one row there is, and it is updated
            return self._upsert_only(rows, updates)
        target = ", ".join(self.key())
        names = ", ".join((*self.columns, *self.extra_names))
        # "WHERE 1" tells SQLite's parser that ON CONFLICT does not belong to a join of the SELECT.
        return (
            f"INSERT INTO {self.name} ({names}) SELECT * FROM ({rows}) WHERE 1 "
            f"ON CONFLICT ({target}) DO UPDATE SET {', '.join(updates)}"
            f"{f' WHERE NOT ({unless})' if unless else ''}"
        )

    def _upsert_only(self, rows: str, updates: Sequence[str]) -> str:
        return (
            f"INSERT INTO {self.name} (one, {', '.join(self.extra_names)}) SELECT 1, * FROM ({rows}) WHERE 1 "
            f"ON CONFLICT (one) DO UPDATE SET {', '.join(updates)}"
        )

    def sweep(self) -> str:
        """Return the statement that removes the rows that are marked so."""
        return f"DELETE FROM {self.name} WHERE {self.zero} = 0"


def stand_in(field: Field) -> str:
    """Return a literal that differs from every value of the column: of another storage class."""
    return "x''" if field.type.kind is Kind.TEXT or _is_text(field) else "''"


def _is_text(field: Field) -> bool:
    return column_type(field.type) == "TEXT"


def key_terms(schema: Schema, terms: Sequence[str]) -> tuple[str, ...]:
    """Return terms for the columns that compare as rows do: NULL equal to NULL."""
    return tuple(
        f"ifnull({term}, {stand_in(field)})" if field.nullable else term
        for term, field in zip(terms, schema, strict=True)
    )


def same_row(schema: Schema, left: Sequence[str], right: Sequence[str]) -> str:
    """Return the condition that two rows are equal, written so that the row index serves it."""
    pairs = zip(key_terms(schema, left), key_terms(schema, right), strict=True)
    return " AND ".join(f"{a} = {b}" for a, b in pairs) or "1"
