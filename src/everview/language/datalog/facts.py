"""Fact files: the rows of a relation as lines of text, as Soufflé reads and writes them.

Without options the file of a relation is `relation.facts`, and a tab stands between values. A symbol is the
text as it is; everything else is read as SQL's CAST reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everview.errors import DataError
from everview.language.casts import CastError, cast_value
from everview.language.datalog.ast import Directive
from everview.language.relations import Relation
from everview.language.types import TEXT, UNKNOWN, Field

__all__ = ["read_facts"]


def read_facts(directive: Directive, relation: Relation, folder: Path) -> list[tuple[Any, ...]]:
    """The rows of the file that an `.input` names, in a folder; DataError for a line that does not fit."""
    options = {name.lower(): value for name, value in directive.options}
    path = folder / options.get("filename", f"{relation.name}.facts")
    separator = options.get("delimiter", "\t").replace("\\t", "\t")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the facts of {relation.name}: {error}", relation=relation.name
        ) from error
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [tuple(_cells(relation, path, number, line, separator)) for number, line in enumerate(lines, 1)]


def _cells(relation: Relation, path: Path, number: int, line: str, separator: str) -> Iterator[Any]:
    cells = line.removesuffix("\r").split(separator)
    if len(cells) != len(relation.schema):
        raise DataError(
            f"{path.name}, line {number}: {relation.name} has {len(relation.schema)} columns, "
            f"here are {len(cells)}",
            relation=relation.name,
        )
    for field, cell in zip(relation.schema, cells, strict=True):
        yield _value(relation, path, number, field, cell)


def _value(relation: Relation, path: Path, number: int, field: Field, cell: str) -> Any:
    if field.type == TEXT:
        return cell
    try:
        return cast_value(cell, UNKNOWN, field.type)
    except CastError as error:
        raise DataError(
            f"{path.name}, line {number}: column {field.name} of {relation.name}: {error}",
            relation=relation.name,
            column=field.name,
            value=cell,
            expected=str(field.type),
        ) from None
