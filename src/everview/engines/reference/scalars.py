"""Scalar expressions over one row, by three-valued logic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from everview.engines.reference.functions import call_function
from everview.errors import DataError
from everview.language.casts import CastError, cast_value
from everview.language.expressions import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expression,
    InList,
    InSubquery,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    OuterColumn,
    Parameter,
    ScalarSubquery,
)
from everview.language.functions import FUNCTIONS
from everview.language.plan import Plan

__all__ = ["FailedError", "Row", "Rows", "Run", "truth"]

Row = tuple[Any, ...]
Rows = list[Row]


class FailedError(ValueError):
    """An expression failed: division by zero, overflow, a bad cast, two rows where one was promised."""


@dataclass(slots=True)
class Run:
    """One evaluation: where rows come from, what parameters are, and what a failure does.

    A failing call yields NULL and is counted; with `strict` it raises DataError instead.
    """

    rows_of: Callable[[Plan, tuple[Row, ...]], Rows]
    parameters: Mapping[Parameter, Any] = field(default_factory=dict)
    strict: bool = False
    failures: int = 0

    def failed(self, error: Exception) -> None:
        """NULL, counted; or DataError."""
        if self.strict:
            raise DataError(str(error)) from None
        self.failures += 1

    def value(self, expression: Expression, row: Row, outer: tuple[Row, ...]) -> Any:
        """The value over `row`; `outer` are the rows around it, inside first."""
        match expression:
            case Column(index):
                return row[index]
            case OuterColumn(depth, index):
                return outer[depth - 1][index]
            case Literal(value):
                return value
            case Parameter():
                return self.parameters[expression]
            case Call("coalesce", arguments):
                values = (self.value(argument, row, outer) for argument in arguments)
                return next((value for value in values if value is not None), None)
            case Call(name, arguments):
                return self._call(expression, [self.value(a, row, outer) for a in arguments], name)
            case Cast(operand, target):
                try:
                    return cast_value(self.value(operand, row, outer), operand.type, target)
                except CastError as error:
                    return self.failed(error)
            case And(arguments):
                return self._junction(arguments, row, outer, decides=False)
            case Or(arguments):
                return self._junction(arguments, row, outer, decides=True)
            case Not(operand):
                value = self.value(operand, row, outer)
                return None if value is None else not value
            case IsNull(operand):
                return self.value(operand, row, outer) is None
            case IsDistinct(left, right):
                return not _same(self.value(left, row, outer), self.value(right, row, outer))
            case InList(operand, items):
                return _member(
                    self.value(operand, row, outer), [self.value(item, row, outer) for item in items]
                )
            case Case(branches, default):
                for condition, result in branches:
                    if self.value(condition, row, outer) is True:
                        return self.value(result, row, outer)
                return self.value(default, row, outer)
            case Exists(plan):
                return bool(self.rows_of(plan, (row, *outer)))
            case InSubquery(operand, plan):
                found = [inner[0] for inner in self.rows_of(plan, (row, *outer))]
                return _member(self.value(operand, row, outer), found)
            case ScalarSubquery(plan):
                return self._scalar(self.rows_of(plan, (row, *outer)))
            case _:
                assert_never(expression)

    def _call(self, call: Call, values: list[Any], name: str) -> Any:
        if FUNCTIONS[name].strict and None in values:
            return None
        try:
            return call_function(call, values)
        except (ArithmeticError, ValueError) as error:
            return self.failed(error)

    def _junction(
        self, arguments: tuple[Expression, ...], row: Row, outer: tuple[Row, ...], *, decides: bool
    ) -> bool | None:
        """AND is decided by false, OR by true; what stands to the right of that is not evaluated."""
        result: bool | None = not decides
        for argument in arguments:
            value = self.value(argument, row, outer)
            if value is decides:
                return value is True
            if value is None:
                result = None
        return result

    def _scalar(self, rows: Rows) -> Any:
        if len(rows) > 1:
            return self.failed(FailedError("a subquery used as a value has more than one row"))
        return rows[0][0] if rows else None


def truth(value: Any) -> bool:
    """Whether a condition holds: NULL does not."""
    return value is True


def _same(left: Any, right: Any) -> bool:
    """Equal, where NULL equals NULL and NaN equals NaN (there is only one NaN object)."""
    return left is right or left == right


def _member(value: Any, items: list[Any]) -> bool | None:
    """Three-valued IN."""
    if not items:
        return False
    if value is None:
        return None
    if any(item is not None and _same(value, item) for item in items):
        return True
    return None if None in items else False
