"""Expressions over Arrow columns, as far as Arrow's functions mean exactly what ours do.

Everything else is a NotHere, and so is an overflow: whoever asks then lets SQLite do it, which gives NULL and
counts. So nothing is approximated here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.engines.spark.types import arrow_type
from everview.language.expressions import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
)
from everview.language.types import Kind, Type

__all__ = ["NotHereError", "vector"]

Vector = Any
"""An array, a chunked array or a scalar of Arrow's."""


class NotHereError(Exception):
    """Arrow has no function that means the same."""


_COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_EXACT = (Kind.BIGINT, Kind.DECIMAL)
_ORDERED = (Kind.BIGINT, Kind.TEXT, Kind.BLOB, Kind.DATE, Kind.TIMESTAMP)
_COMPARED = (Kind.BIGINT, Kind.DECIMAL, Kind.TEXT, Kind.BLOB, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN)


def vector(expression: Expression, columns: Sequence[Vector], rows: int) -> Vector:
    """The value of an expression for each row; NotHere when it cannot be had in this way."""
    try:
        found = _Vectors(columns).value(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise NotHereError(str(error)) from error
    return pa.repeat(found, rows) if isinstance(found, pa.Scalar) else found


class _Vectors:
    def __init__(self, columns: Sequence[Vector]) -> None:
        self._columns = columns

    def value(self, expression: Expression) -> Vector:
        match expression:
            case Column(index):
                return self._columns[index]
            case Literal(value, kind):
                return pa.scalar(value, arrow_type(kind))
            case Call(name, arguments):
                return self._call(name, arguments, expression.type)
            case Cast(operand, target):
                return _cast(self.value(operand), operand.type, target)
            case And(arguments):
                return self._junction(pc.and_kleene, arguments, empty=True)
            case Or(arguments):
                return self._junction(pc.or_kleene, arguments, empty=False)
            case Not(IsDistinct(left, right)):
                return self._same(left, right)
            case IsDistinct(left, right):
                return pc.invert(self._same(left, right))
            case Not(operand):
                return pc.invert(self.value(operand))
            case IsNull(operand):
                return pc.is_null(self.value(operand))
            case InList(operand, items) if operand.type.kind in _COMPARED:
                sought = self.value(operand)
                result = pc.equal(sought, self.value(items[0]))
                for item in items[1:]:
                    result = pc.or_kleene(result, pc.equal(sought, self.value(item)))
                return result
            case Case(branches, default):
                result = self.value(default)
                for condition, value in reversed(branches):
                    result = pc.if_else(pc.fill_null(self.value(condition), False), self.value(value), result)
                return result
            case _:
                raise NotHereError(type(expression).__name__)

    def _junction(self, function: Any, arguments: Sequence[Expression], *, empty: bool) -> Vector:
        if not arguments:
            return pa.scalar(empty)
        result = self.value(arguments[0])
        for argument in arguments[1:]:
            result = function(result, self.value(argument))
        return result

    def _same(self, left: Expression, right: Expression) -> Vector:
        if left.type.kind not in _COMPARED:
            raise NotHereError(f"whether {left.type}s are the same")
        one, other = self.value(left), self.value(right)
        both = pc.and_(pc.is_null(one), pc.is_null(other))
        return pc.or_(pc.fill_null(pc.equal(one, other), False), both)

    def _call(self, name: str, arguments: Sequence[Expression], result: Type) -> Vector:
        kinds = {argument.type.kind for argument in arguments}
        if name in _COMPARISONS and len(kinds) == 1 and kinds <= {*_COMPARED}:
            return _COMPARISONS[name](*map(self.value, arguments))
        if name in _ARITHMETIC and kinds <= {*_EXACT}:
            return _typed(_ARITHMETIC[name](*map(self.value, arguments)), result)
        if name in ("/", "%") and kinds == {Kind.BIGINT}:
            one, other = map(self.value, arguments)
            quotient = pc.divide_checked(one, other)
            if name == "/":
                return quotient
            return pc.subtract_checked(one, pc.multiply_checked(quotient, other))
        if name == "coalesce":
            return pc.coalesce(*map(self.value, arguments))
        if name in ("greatest", "least") and len(kinds) == 1 and kinds <= {*_ORDERED}:
            choose = pc.max_element_wise if name == "greatest" else pc.min_element_wise
            return choose(*map(self.value, arguments), skip_nulls=True)
        if name == "sign" and kinds == {Kind.BIGINT}:
            return _typed(pc.sign(self.value(arguments[0])), result)
        if name == "||" and kinds == {Kind.TEXT}:
            return pc.binary_join_element_wise(*map(self.value, arguments), pa.scalar(""))
        raise NotHereError(name)


def _typed(found: Vector, kind: Type) -> Vector:
    wanted = arrow_type(kind)
    return found if found.type == wanted else found.cast(wanted)


def _cast(found: Vector, source: Type, target: Type) -> Vector:
    """Between exact numbers, where nothing is rounded."""
    exact = source.kind in _EXACT and target.kind in _EXACT
    if not exact or (source.kind is Kind.DECIMAL and source.digits[1] > target.digits[1]):
        raise NotHereError(f"a cast from {source} to {target}")
    return _typed(found, target)
