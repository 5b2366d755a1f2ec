"""Queries and rows as they are typed: texts that become values of the types the query or view asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from everview.cli.json_lines import decoder, read_member
from everview.errors import DataError
from everview.language.expressions import Parameter
from everview.language.plan import Schema
from everview.language.statements import Query
from everview.language.text_values import UnreadableError, misfit, read_text
from everview.language.types import Field, Type
from everview.site import Site

__all__ = ["read_row", "run_query"]


def run_query(site: Site, sql: str, params: Sequence[str]) -> tuple[Schema, list[tuple[Any, ...]]]:
    """The columns and rows of a SELECT; `params` are texts for its parameters."""
    statement = site.program.bind(sql)
    if not isinstance(statement, Query):
        raise DataError("a query is a SELECT; `everview insert` and `everview delete` write")
    schema = statement.plan.schema
    names = [field.name for field in schema]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        raise DataError(f"two columns of the query are named {twice}; name them apart with AS")
    rows = site.query(sql, _arguments(statement.parameters, params))
    return schema, [tuple(row.values()) for row in rows]


def _arguments(wanted: Sequence[Parameter], given: Sequence[str]) -> dict[str, Any] | list[Any]:
    """The values for `:name` from NAME=VALUE, or for `?` in order."""
    types = {parameter.name: parameter.type for parameter in wanted}
    positional = all(name.isdigit() for name in types)
    values: dict[str, Any] = {}
    for index, text in enumerate(given, start=1):
        name, sign, rest = (str(index), "=", text) if positional else text.partition("=")
        if not sign:
            raise DataError(f"the query has parameters with names: write --param NAME={text}")
        if name not in types:
            raise DataError(f"the query has no parameter {name}; it has {', '.join(types) or 'none'}")
        try:
            values[name] = read_text(rest, types[name])
        except UnreadableError as bad:
            raise DataError(
                f"parameter {name} cannot be {bad.text!r}: expected {bad.expected}",
                column=name,
                value=bad.text,
                expected=str(types[name]),
            ) from None
    return list(values.values()) if positional else values


def read_row(view: str, schema: Schema, words: Sequence[str]) -> tuple[Any, ...]:
    """A row of a view from COLUMN=VALUE words, or from one JSON object or array; every column is named.

    Of the words `column=` is NULL and `column=""` the empty text, as in CSV.
    """
    fields = {field.name: replace(field, nullable=True) for field in schema}
    if len(words) == 1 and words[0].lstrip().startswith(("{", "[")):
        given = _from_json(view, fields, words[0])
    else:
        given = _from_words(view, fields, words)
    unknown = next((name for name in given if name not in fields), None)
    if unknown is not None:
        raise DataError(
            f"{view} has no column {unknown}; its columns are {', '.join(fields)}", column=unknown
        )
    missing = [name for name in fields if name not in given]
    if missing:
        also = " ".join(f"{name}=…" for name in missing)
        raise DataError(f"a row of {view} needs every column; say {also} too, or {missing[0]}= for NULL")
    return tuple(given[name] for name in fields)


def _from_words(view: str, fields: dict[str, Field], words: Sequence[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign:
            raise DataError(f"{word!r} is no COLUMN=VALUE; {view} has the columns {', '.join(fields)}")
        if name in fields and text not in ("", '""'):
            given[name] = _value(view, fields[name], text, read_text)
        else:
            given[name] = None if text == "" else ""
    return given


def _from_json(view: str, fields: dict[str, Field], text: str) -> dict[str, Any]:
    try:
        found = decoder().decode(text)
    except ValueError as error:
        raise DataError(f"the row is not JSON: {error}") from None
    if isinstance(found, list):
        if len(found) != len(fields):
            raise DataError(
                f"{view} has {len(fields)} columns ({', '.join(fields)}), the row has {len(found)}"
            )
        found = dict(zip(fields, found, strict=True))
    return {
        name: _value(view, fields[name], value, read_member) if name in fields else value
        for name, value in found.items()
    }


def _value(view: str, field: Field, given: Any, read: Callable[[Any, Type], Any]) -> Any:
    try:
        return read(given, field.type)
    except UnreadableError as bad:
        raise misfit(view, field, bad) from None
