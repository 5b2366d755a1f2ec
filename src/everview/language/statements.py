"""Queries and writes, bound: what `query` and `execute` run.

A write is a plan that says which rows: Insert's rows in the relation's column order, Delete's the rows
to go, Update's each the old row followed by the new one. So an engine that runs plans runs writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from everview.errors import DataError
from everview.language.expressions import Parameter
from everview.language.plan import Plan
from everview.language.values import UnfitError, check_value

__all__ = ["Delete", "Insert", "Query", "Statement", "Update", "arguments"]


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT; a TopK at the root, or below one last Project, orders the result."""

    plan: Plan
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert the plan's rows."""

    relation: str
    plan: Plan
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """Replace rows: the plan has the relation's columns twice, the old values and then the new ones."""

    relation: str
    plan: Plan
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the plan's rows, one copy of a bag's row for each."""

    relation: str
    plan: Plan
    parameters: tuple[Parameter, ...]


Statement: TypeAlias = Query | Insert | Update | Delete


def arguments(
    parameters: Sequence[Parameter], given: Mapping[str, Any] | Sequence[Any] | None
) -> dict[Parameter, Any]:
    """The value of each parameter, checked against the type that its context asks for.

    `?` take a sequence, `:name` a mapping; too few, too many or unknown ones are a DataError.
    """
    wanted = list(dict.fromkeys(parameter.name for parameter in parameters))
    values: dict[str, Any]
    if isinstance(given, Mapping):
        values = {str(name): value for name, value in given.items()}
    else:
        values = {str(index): value for index, value in enumerate(given or (), start=1)}
    if set(values) != set(wanted):
        missing = [name for name in wanted if name not in values]
        extra = [name for name in values if name not in wanted]
        problem = f"no value for parameter {missing[0]}" if missing else f"there is no parameter {extra[0]}"
        raise DataError(f"{problem}; the statement has {len(wanted)}, {len(values)} were given")
    checked: dict[Parameter, Any] = {}
    for parameter in parameters:
        value = values[parameter.name]
        try:
            checked[parameter] = check_value(value, parameter.type)
        except UnfitError as unfit:
            raise DataError(
                f"parameter {parameter.name} cannot be {value!r}: expected {unfit}",
                column=parameter.name,
                value=value,
                expected=str(parameter.type),
            ) from None
    return checked
