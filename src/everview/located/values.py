"""Terms of rules as functions of what their variables are bound to: with the values they have in any view.

What has no value (a sum that does not fit, a division by zero) makes no fact: the rule does not hold there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from everview.engines.reference.scalars import Run
from everview.language.datalog.ast import Comparison, Term, Variable
from everview.language.datalog.terms import call, term_expression
from everview.language.expressions import Column, Expression, Literal
from everview.language.types import Type

__all__ = ["Bound", "NoValueError", "Terms"]

Bound = list[Any]
"""Values by the slot of the variable; None where none is bound yet."""

Evaluate = Callable[[Bound], Any]


class NoValueError(Exception):
    """An expression has no value for what its variables are bound to."""


def _no_rows(*_: Any) -> Any:
    raise AssertionError("a term of a rule reads no rows of its own")


class Terms:
    """The variables of one rule: each has a slot, and a type once something gives it a value."""

    def __init__(self) -> None:
        self._columns: dict[str, Expression] = {}
        self._run = Run(_no_rows)

    def __len__(self) -> int:
        return len(self._columns)

    def slot(self, variable: Variable, type_: Type) -> int:
        """The slot of a variable that something of this type gives a value."""
        column = self._columns.get(variable.name)
        if not isinstance(column, Column):
            self._columns[variable.name] = column = Column(len(self._columns), type_, variable.name)
        return column.index

    def type_of(self, term: Term) -> Type:
        """The type of a term over variables that have one."""
        return term_expression(term, self._columns).type

    def value(self, term: Term) -> Evaluate:
        """The function that gives a term's value."""
        return self._evaluate(term_expression(term, self._columns))

    def holds(self, condition: Comparison) -> Callable[[Bound], bool]:
        """The function that says whether a comparison holds."""
        sides = [term_expression(side, self._columns) for side in (condition.left, condition.right)]
        name = {"!=": "<>"}.get(condition.operator, condition.operator)
        compared = call(name, sides, condition.place)
        return lambda bound: self._run.value(compared, tuple(bound), ()) is True

    def _evaluate(self, expression: Expression) -> Evaluate:
        match expression:
            case Column(index):
                return operator.itemgetter(index)
            case Literal(value):
                return lambda _: value

        def evaluate(bound: Bound) -> Any:
            found = self._run.value(expression, tuple(bound), ())
            if found is None:
                raise NoValueError
            return found

        return evaluate
