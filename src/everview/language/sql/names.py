"""What a name means at a place: the columns that FROM makes visible, and those of the rows around.

Names are looked up as in PostgreSQL: unquoted ones in lower case; first among the columns of the own
FROM, then of the query around it, and so on outwards; a name that two tables have is ambiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from everview.language.expressions import Column, Expression, OuterColumn, transform
from everview.language.plan import Schema
from everview.language.sql.source import Source, folded, nearest

__all__ = ["Scope", "Visible", "resolve_column"]


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that a name may mean; a `hidden` one only with its table's name before it (USING)."""

    table: str | None
    name: str
    expression: Expression
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of one FROM, in the order in which `*` lists them."""

    columns: tuple[Visible, ...]

    @classmethod
    def of_table(cls, table: str | None, schema: Schema) -> Scope:
        """The columns of one table under one name."""
        return cls(
            tuple(
                Visible(table, field.name, Column(index, field.type, field.name))
                for index, field in enumerate(schema)
            )
        )

    @property
    def tables(self) -> list[str]:
        """The tables' names, each once, in order."""
        return list(dict.fromkeys(column.table for column in self.columns if column.table is not None))

    def find(self, name: str, table: str | None) -> list[Visible]:
        """Every column that the name may mean."""
        if table is None:
            return [column for column in self.columns if column.name == name and not column.hidden]
        return [column for column in self.columns if column.name == name and column.table == table]


def resolve_column(source: Source, node: exp.Column, scopes: Sequence[Scope]) -> Expression:
    """What a column's name means; `scopes` are the own FROM's and those around it, inside first."""
    if node.args.get("db") is not None or node.args.get("catalog") is not None:
        raise source.error(node, "a column is written column or table.column")
    name = folded(node.this)
    table = folded(node.args["table"]) if node.args.get("table") is not None else None
    for depth, scope in enumerate(scopes):
        found = scope.find(name, table)
        if len(found) > 1:
            owners = ", ".join(str(column.table) for column in found)
            raise source.error(
                node, f"column {name} is ambiguous: {owners} have it", hint="write table.column"
            )
        if found:
            return _seen_from(found[0].expression, depth)
        if table is not None and table in scope.tables:
            break
    raise _unknown(source, node, name, table, scopes)


def _seen_from(expression: Expression, depth: int) -> Expression:
    """A column of a scope `depth` queries out, as the inner query writes it."""
    if depth == 0:
        return expression

    def one(node: Expression) -> Expression:
        match node:
            case Column(index, kind, name):
                return OuterColumn(depth, index, kind, name)
            case _:
                return node

    return transform(expression, one)


def _unknown(
    source: Source, node: exp.Column, name: str, table: str | None, scopes: Sequence[Scope]
) -> Exception:
    tables = [known for scope in scopes for known in scope.tables]
    if table is not None and table not in tables:
        hint = nearest(table, tables) or f"FROM has {', '.join(tables) or 'no table'}"
        return source.error(node.args["table"], f"there is no table {table} in FROM", hint=hint)
    names = {
        column.name for scope in scopes for column in scope.columns if table is None or column.table == table
    }
    place = f"{table}.{name}" if table is not None else name
    hint = nearest(name, names) or (
        f"the columns are {', '.join(sorted(names))}" if names else "there is no FROM to take it from"
    )
    return source.error(node.this, f"there is no column {place}", hint=hint)
