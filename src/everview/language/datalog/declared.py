"""What a Datalog program declares: relations with typed columns, and which of them sites write.

A relation without rules is replicated, and sites write it; one with rules or facts is a view. Columns are
never NULL. Soufflé's types are number, symbol, float and unsigned; the eight types of SQL programs may be
used too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.language.datalog.ast import Declaration, Directive, Place, Rule, Text
from everview.language.datalog.parser import error_at
from everview.language.functions import BARE_DECIMAL
from everview.language.plan import Schema
from everview.language.sql.source import nearest
from everview.language.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DECIMAL_DIGITS,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    Field,
    Kind,
    Type,
)

__all__ = ["TYPES", "Declared", "read_declarations"]

TYPES = {
    "number": BIGINT,
    "unsigned": BIGINT,
    "symbol": TEXT,
    "float": DOUBLE,
    "boolean": BOOLEAN,
    "bigint": BIGINT,
    "double": DOUBLE,
    "decimal": BARE_DECIMAL,
    "text": TEXT,
    "blob": BLOB,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
_RESERVED = ("sqlite_", "everview_")
_DECIMAL = re.compile(r"decimal\((\d+)(?:,(\d+))?\)")


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared relation: its columns, and the position of the one that says where a row lives."""

    name: str
    schema: Schema
    location: int | None
    declaration: Declaration


def read_declarations(text: Text) -> dict[str, Declared]:
    """The relations of a program by name."""
    aliases = _aliases(text)
    found: dict[str, Declared] = {}
    lower: dict[str, str] = {}
    for declaration in text.declarations:
        name = declaration.relation
        _check_name(declaration, lower)
        lower[name.lower()] = name
        if not declaration.columns:
            raise error_at(
                declaration.place,
                f"{name} has no columns",
                hint="give it one, and the same value in all rows",
            )
        names = [column.name.lower() for column in declaration.columns]
        for column, own in zip(declaration.columns, names, strict=True):
            if names.count(own) > 1 and names.index(own) != declaration.columns.index(column):
                raise error_at(column.place, f"{name} has two columns {column.name}")
        schema = tuple(
            Field(column.name, _type(column.type, aliases, column.place), nullable=False)
            for column in declaration.columns
        )
        found[name] = Declared(name, schema, declaration.location, declaration)
    _check_directives(text.directives, text.rules, found)
    return found


def _check_name(declaration: Declaration, known: Mapping[str, str]) -> None:
    name = declaration.relation
    if name.lower().startswith(_RESERVED):
        raise error_at(declaration.place, f"{name}: names that begin with sqlite_ or everview_ are reserved")
    if name.lower() in known:
        other = known[name.lower()]
        same = "is declared twice" if other == name else f"differs from {other} only in its letters' case"
        raise error_at(declaration.place, f"{name} {same}")


def _aliases(text: Text) -> dict[str, Type]:
    found: dict[str, Type] = {}
    for alias in text.types:
        if alias.name in found or alias.name in TYPES:
            raise error_at(alias.place, f"type {alias.name} is declared twice")
        found[alias.name] = _type(alias.type, found, alias.place)
    return found


def _type(name: str, aliases: Mapping[str, Type], place: Place) -> Type:
    known = aliases.get(name) or TYPES.get(name.lower())
    if known is not None:
        return known
    decimal = _DECIMAL.fullmatch(name.lower())
    if decimal is not None:
        precision, scale = int(decimal[1]), int(decimal[2] or 0)
        if 1 <= precision <= DECIMAL_DIGITS and scale <= precision:
            return Type(Kind.DECIMAL, precision, scale)
    hint = nearest(name, [*aliases, *TYPES]) or "the types are " + ", ".join(TYPES)
    raise error_at(place, f"there is no type {name}", hint=hint)


def _check_directives(
    directives: Iterable[Directive], rules: Iterable[Rule], declared: Mapping[str, Declared]
) -> None:
    defined = {rule.head.relation for rule in rules}
    for directive in directives:
        if directive.relation not in declared:
            raise error_at(
                directive.place,
                f"there is no relation {directive.relation}",
                hint=nearest(directive.relation, declared) or f"write .decl {directive.relation}(…)",
            )
        if directive.kind == "input" and directive.relation in defined:
            name = directive.relation
            raise error_at(
                directive.place,
                f"{name} has rules, so sites do not write it and no file fills it",
                hint=f"declare another relation for the file, and a rule {name}(…) :- it(…)",
            )
