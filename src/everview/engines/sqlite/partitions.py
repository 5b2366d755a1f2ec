"""Values of partitioned relations, between people and stores.

People choose values by column, as in `{"region": ["eu", "us"]}`; a column that is left out may have any. On a
command line that is `orders/region=eu,us`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod
from typing import Any

from everview.engines.sqlite.scalars.storage import load_value, store_value
from everview.errors import DataError
from everview.language.partitions import ANY, Choices, cells_of, covers, text_of
from everview.language.program import Program
from everview.language.relations import Relation
from everview.language.text_values import UnreadableError, misfit, read_text
from everview.language.values import UnfitError, check_value

__all__ = ["as_values", "check_hosted", "choices_of", "hosts_of", "read_choices", "said"]

MOST_CHOICES = 1 << 16


def as_values(relation: Relation, text: str) -> dict[str, Any]:
    """Return a value or a choice by column; columns that may have any value are left out."""
    pairs = zip(relation.partitioned, cells_of(text), strict=True)
    return {column: load_value(cell, relation.field(column).type) for column, cell in pairs if cell != ANY}


def said(relation: Relation, text: str) -> str:
    """Return a value or a choice as people say it."""
    each = as_values(relation, text).items()
    return ", ".join(f"{column} = {'NULL' if value is None else value}" for column, value in each)


def check_hosted(relation: Relation, values: Iterable[str], choices: Choices | None) -> None:
    """DataError where a value is not hosted."""
    missing = next((value for value in values if not covers(choices, value)), None)
    if missing is not None:
        cells = as_values(relation, missing)
        raise DataError(
            f"{relation.name}: this site does not host {said(relation, missing)}; host it as well "
            f"(hosts={{{relation.name!r}: ...}} when the site is opened), or write where it is hosted",
            relation=relation.name,
            column=relation.partitioned[0],
            value=next(iter(cells.values())),
        )


def choices_of(program: Program, hosts: Iterable[str] | None) -> dict[str, Choices]:
    """Return the values that are to be hosted, by relation; relations that are hosted whole are left out."""
    if not isinstance(hosts, Mapping):
        return {}
    found = {}
    for name, values in hosts.items():
        program.schema(name)
        choices = None
        if values is not ...:
            if name not in program.relations:
                raise DataError(f"{name} is hosted whole; write {{{name!r}: ...}}", relation=name)
            choices = read_choices(program.relations[name], values)
        if choices is not None:
            found[name] = choices
    return found


def read_choices(relation: Relation, values: Any) -> Choices | None:
    """Return the choices that a mapping of columns to values makes; None if it names no column."""
    if not relation.partitioned:
        raise DataError(
            f"{relation.name} is not declared with PARTITION BY, so it is hosted whole",
            relation=relation.name,
        )
    names = ", ".join(relation.partitioned)
    if not isinstance(values, Mapping):
        raise DataError(f"{relation.name}: say which values of {names}", relation=relation.name, value=values)
    unknown = next((column for column in values if column not in relation.partitioned), None)
    if unknown is not None:
        raise DataError(
            f"{relation.name} is partitioned by {names}, not by {unknown}",
            relation=relation.name,
            column=str(unknown),
        )
    if not values:
        return None
    cells = [
        _cells(relation, column, values[column]) if column in values else [ANY]
        for column in relation.partitioned
    ]
    if not 0 < prod(map(len, cells)) <= MOST_CHOICES:
        raise DataError(f"{relation.name}: choose from 1 to {MOST_CHOICES} values", relation=relation.name)
    return frozenset(map(text_of, product(*cells)))


def _cells(relation: Relation, column: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise DataError(
            f"{relation.name}.{column}: list the values, as in {{{column!r}: [{values!r}]}}",
            relation=relation.name,
            column=column,
            value=values,
        )
    field, found = relation.field(column), []
    for value in values:
        try:
            fit = check_value(value, field.type)
        except UnfitError as error:
            raise DataError(
                f"{relation.name}.{column}: {value!r} is no {error}",
                relation=relation.name,
                column=column,
                value=value,
                expected=str(field.type),
            ) from None
        found.append(store_value(fit, field.type))
    return found


def _read(relation: Relation, column: str, texts: list[str]) -> list[Any]:
    field = relation.field(column)
    try:
        return [read_text(text, field.type) for text in texts]
    except UnreadableError as bad:
        raise misfit(relation.name, field, bad) from None


def hosts_of(program: Program, options: Iterable[str]) -> dict[str, Any]:
    """Return what `NAME` and `NAME/COLUMN=VALUE,…` on a command line say is hosted.

    Of several that name a relation the values are joined, column by column.
    """
    found: dict[str, Any] = {}
    for option in options:
        name, *pairs = option.split("/")
        program.schema(name)
        if not pairs:
            found[name] = ...
            continue
        relation = program.relations.get(name)
        for pair in pairs:
            column, equals, listed = pair.partition("=")
            if not equals or relation is None or column not in relation.partitioned:
                what = ", ".join(relation.partitioned) if relation and relation.partitioned else "nothing"
                raise DataError(
                    f"{option}: {name} is partitioned by {what}; write {name}/COLUMN=VALUE,…", relation=name
                )
            values = _read(relation, column, listed.split(","))
            if found.get(name) is not ...:
                known = found.setdefault(name, {}).setdefault(column, [])
                known += [value for value in values if value not in known]
    return found
