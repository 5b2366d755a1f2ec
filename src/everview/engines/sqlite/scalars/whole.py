"""Expressions nested too deeply for SQLite's parser, evaluated whole by the reference.

SQLite before 3.46 parses with a stack of 100 places, which eight subqueries inside each other fill. So
the nesting of generated SQL is measured, and beyond a bound the expression becomes one call of
`ev_evaluate` with a key under which this process keeps the expression, and the columns it reads.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from everview.engines.reference.scalars import Run
from everview.engines.sqlite.scalars.literals import text_literal
from everview.engines.sqlite.scalars.storage import load_value, store_value
from everview.language.expressions import Column, Expression, Parameter, walk

__all__ = ["MOST_NESTED", "evaluator", "is_deep", "nesting", "whole_sql"]

MOST_NESTED = 65
"""Places on the parser's stack that an expression may fill; the rest are left to the statement around it."""

_WORDS = re.compile(r"'(?:[^']|'')*'|\(SELECT\b|\w*\(|\)|\bCASE\b|\bEND\b|\w+|[^\w\s()']+")


def is_deep(sql: str) -> bool:
    """Whether an expression that we generated is nested too deeply. Most are so short that counting tells."""
    return 6 * (sql.count("(") + sql.count("CASE")) > MOST_NESTED and nesting(sql) > MOST_NESTED


def nesting(sql: str) -> int:
    """At least the places that SQLite's parser needs for an expression that we generated."""
    deepest = depth = 0
    weights: list[int] = []
    after_opening = True
    for found in _WORDS.finditer(sql):
        word = found[0]
        opening = True
        if word == "(SELECT":
            weights.append(6)
        elif word == "CASE":
            weights.append(5)
        elif word == "(":
            weights.append(1 if after_opening else 5)
        elif word.endswith("(") and not word.startswith("'"):
            weights.append(6)
        else:
            opening = False
            if word in (")", "END"):
                depth -= weights.pop()
        if opening:
            depth += weights[-1]
            deepest = max(deepest, depth)
        after_opening = opening
    return deepest


class _Kept(NamedTuple):
    expression: Expression
    inputs: tuple[Column | Parameter, ...]
    width: int


_KEPT: dict[str, _Kept] = {}


def whole_sql(expression: Expression, read: Callable[[Expression], str], *, strict: bool) -> str:
    """One call for the whole expression; `read` gives the SQL of a column or a parameter."""
    atoms = (node for node in walk(expression) if isinstance(node, Column | Parameter))
    inputs = tuple(dict.fromkeys(atoms))
    width = max((node.index + 1 for node in inputs if isinstance(node, Column)), default=0)
    key = hashlib.sha256(repr(expression).encode()).hexdigest()[:32]
    _KEPT[key] = _Kept(expression, inputs, width)
    name = "ev_evaluate_strict" if strict else "ev_evaluate"
    arguments = ", ".join([text_literal(key), *map(read, inputs)])
    return f"{name}({arguments})"


class _Run(Run):
    """A run of the reference whose failures go where the connection's failures go."""

    __slots__ = ("handler",)
    handler: Callable[[str], None]

    def failed(self, error: Exception) -> None:
        """NULL, or whatever the handler raises."""
        self.handler(str(error))


def _no_plans(*_arguments: Any) -> Any:
    raise AssertionError("a planner rule makes joins of subqueries")


def evaluator(failed: Callable[[str], None]) -> Callable[..., Any]:
    """The function behind `ev_evaluate`."""

    def evaluate(key: str, *stored: Any) -> Any:
        expression, inputs, width = _KEPT[key]
        row: list[Any] = [None] * width
        parameters: dict[Parameter, Any] = {}
        for node, value in zip(inputs, _loaded(inputs, stored), strict=True):
            if isinstance(node, Column):
                row[node.index] = value
            else:
                parameters[node] = value
        run = _Run(_no_plans, parameters)
        run.handler = failed
        return store_value(run.value(expression, tuple(row), ()), expression.type)

    return evaluate


def _loaded(inputs: Sequence[Column | Parameter], stored: Sequence[Any]) -> list[Any]:
    return [load_value(value, node.type) for node, value in zip(inputs, stored, strict=True)]
