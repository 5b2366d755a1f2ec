"""Scalar expressions as Spark SQL text over columns `c0`, `c1` and so on.

The text agrees with the reference value by value. A failing call is NULL, as in a view; nothing raises.
A subquery or a parameter is a ProgramError here, when the program is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from everview.engines.spark.casts import cast_text
from everview.engines.spark.functions import function_text
from everview.engines.spark.refusals import Refusal, refuse
from everview.engines.spark.text import Names, literal
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

__all__ = ["scalar"]

_SUBQUERY = Refusal(
    "a subquery inside an expression is not yet turned into a join",
    "write it as a join, or as a view to join",
)
_PARAMETER = Refusal("a view has no parameters", "write the value out")


def scalar(expression: Expression, *, column: Callable[[int], str] = "c{}".format) -> str:
    """The text of an expression; `column` names the columns of its row."""
    return _Scalar(column).text(expression)


class _Scalar:
    def __init__(self, column: Callable[[int], str]) -> None:
        self._column = column
        self._names = Names()

    def text(self, expression: Expression) -> str:
        match expression:
            case Column(index):
                return self._column(index)
            case Literal(value, kind):
                return literal(value, kind)
            case Call(_, arguments):
                texts = tuple(self.text(argument) for argument in arguments)
                return function_text(self._names, expression, texts)
            case Cast(operand, target):
                return cast_text(self._names, self.text(operand), operand.type, target)
            case And(arguments):
                return self._junction(" AND ", arguments)
            case Or(arguments):
                return self._junction(" OR ", arguments)
            case Not(operand):
                return f"(NOT {self.text(operand)})"
            case IsNull(operand):
                return f"({self.text(operand)} IS NULL)"
            case IsDistinct(left, right):
                return f"(NOT {self.text(left)} <=> {self.text(right)})"
            case InList(operand, items):
                return f"({self.text(operand)} IN ({', '.join(map(self.text, items))}))"
            case Case(branches, default):
                whens = " ".join(f"WHEN {self.text(c)} THEN {self.text(r)}" for c, r in branches)
                return f"CASE {whens} ELSE {self.text(default)} END"
            case Parameter(name):
                raise refuse(f"parameter {name}", _PARAMETER)
            case Exists() | InSubquery() | ScalarSubquery() | OuterColumn():
                raise refuse("a subquery", _SUBQUERY)
            case _:
                assert_never(expression)

    def _junction(self, word: str, arguments: tuple[Expression, ...]) -> str:
        if not arguments:
            return "true" if word == " AND " else "false"
        return f"({word.join(map(self.text, arguments))})"
