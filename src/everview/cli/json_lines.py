"""JSON lines: an object a line, column names as members, in UTF-8.

NULL, BOOLEAN, BIGINT, DOUBLE and TEXT are JSON's own null, booleans, numbers and strings. DECIMAL, DATE,
TIMESTAMP and BLOB are strings in the form that `text_values` gives them, and so are the doubles that JSON
has no number for: "NaN", "Infinity", "-Infinity". A DECIMAL may also be read from a number, exactly.
A member that is left out is NULL.
"""

from __future__ import annotations

import decimal
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from everview.cli.chunks import CHUNK, Chunk, Place, cannot_hold, to_rows, unknown_column
from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.text_values import UnreadableError, read_text, read_texts, write_text
from everview.language.types import Field, Kind, Type

__all__ = ["decoder", "json_line", "json_object", "json_value", "read_json_lines", "read_member"]


def json_value(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case _:
            return write_text(value)


def json_object(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """A row as JSON has it."""
    return {name: json_value(value) for name, value in zip(names, values, strict=True)}


def json_line(names: Sequence[str], values: Sequence[Any]) -> str:
    """A row as a line of JSON."""
    return json.dumps(json_object(names, values), ensure_ascii=False)


def decoder() -> json.JSONDecoder:
    """Reads JSON, numbers with a point exactly, and no NaN, which is none of JSON's."""
    return json.JSONDecoder(parse_float=decimal.Decimal, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f'{word} is written as a string: "{word}"')


def read_member(value: Any, target: Type) -> Any:
    """The value that a JSON value stands for in a column; UnreadableError if a string cannot be read.

    What has another JSON type than the column asks for is left as it is: the relation refuses it.
    """
    if isinstance(value, str) and target.kind is not Kind.TEXT and target.kind not in _NO_STRINGS:
        return read_text(value, target)
    if isinstance(value, decimal.Decimal) and target.kind is not Kind.DECIMAL:
        return float(value)
    return value


_NO_STRINGS = (Kind.BOOLEAN, Kind.BIGINT)
_STRINGS_ONLY = (Kind.DATE, Kind.TIMESTAMP, Kind.BLOB, Kind.DECIMAL)


def read_json_lines(
    stream: TextIO, source: str, relation: Relation, done: Callable[[], int], size: int = CHUNK
) -> Iterator[Chunk]:
    """The rows of a file for a relation; DataError names the line of the first that does not fit."""
    exact = any(field.type.kind is Kind.DECIMAL for field in relation.schema)
    decode = json.JSONDecoder(parse_float=decimal.Decimal if exact else None, parse_constant=_refuse).decode
    known = frozenset(relation.columns)
    numbered = enumerate(stream, start=1)
    while lines := list(itertools.islice(numbered, size)):
        kept = [(number, line) for number, line in lines if not line.isspace()]
        place = _place(source, [number for number, _ in kept])
        objects = [_object(decode, line, place, index) for index, (_, line) in enumerate(kept)]
        if not all(map(known.issuperset, objects)):
            index = next(index for index, found in enumerate(objects) if not known.issuperset(found))
            name = next(name for name in objects[index] if name not in known)
            raise unknown_column(relation, name, place(index))
        columns = {
            field.name: _column(relation, field, [found.get(field.name) for found in objects], place)
            for field in relation.schema
        }
        yield Chunk(to_rows(relation, columns, len(objects)), place, done())


def _place(source: str, numbers: Sequence[int]) -> Place:
    return lambda index: f"{source}, line {numbers[index]}"


def _object(decode: Callable[[str], Any], line: str, place: Place, index: int) -> Mapping[str, Any]:
    try:
        found = decode(line.rstrip())
    except ValueError as error:
        said = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
        raise DataError(f"{place(index)}: this is not JSON: {said}") from None
    except RecursionError:
        raise DataError(f"{place(index)}: this JSON is nested too deeply for a row") from None
    if not isinstance(found, dict):
        raise DataError(
            f"{place(index)}: a row is a JSON object on a line of its own, not {line.strip()[:40]}"
        )
    return found


def _column(relation: Relation, field: Field, column: list[Any], place: Place) -> Sequence[Any]:
    kinds = set(map(type, column)) - {type(None)}
    if kinds == {str} and field.type.kind in _STRINGS_ONLY:
        try:
            return read_texts(column, field.type)
        except UnreadableError as bad:
            raise cannot_hold(relation, field, place, bad) from None
    if str not in kinds and decimal.Decimal not in kinds:
        return column
    values = []
    for index, value in enumerate(column):
        try:
            values.append(read_member(value, field.type))
        except UnreadableError as bad:
            bad.index = index
            raise cannot_hold(relation, field, place, bad) from None
    return values
