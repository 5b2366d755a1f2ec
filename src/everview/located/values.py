"""Terms of rules as functions of what their variables are bound to.

Values are those of BIGINT, TEXT and BOOLEAN columns. What has no value (a sum that does not fit, a division by zero)
makes no fact: the rule does not hold there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everview.errors import ProgramError
from everview.language.datalog.ast import Constant, Operation, Term, Variable
from everview.language.datalog.parser import error_at

__all__ = ["Bindings", "NoValueError", "compare", "compile_term"]

Bindings = list[Any]
"""Values by the number of the variable; None where none is bound yet."""

Evaluate = Callable[[Bindings], Any]

_LEAST, _GREATEST = -(2**63), 2**63 - 1


class NoValueError(Exception):
    """An expression has no value for these bindings."""


def compile_term(term: Term, slots: Mapping[str, int]) -> Evaluate:
    """Return the function that gives a term's value."""
    match term:
        case Constant(value):
            return lambda _: value
        case Variable(name):
            return operator.itemgetter(slots[name])
        case Operation(name, arguments):
            function = _FUNCTIONS.get((name, len(arguments))) or _FUNCTIONS.get((name, None))
            if function is None:
                known = ", ".join(sorted({name for name, _ in _FUNCTIONS}))
                raise error_at(
                    term.place,
                    f"{name} is not computed in rules of located relations",
                    hint=f"there are {known}",
                )
            inner = [compile_term(argument, slots) for argument in arguments]
            return lambda bound: function([evaluate(bound) for evaluate in inner])
        case _:
            raise ProgramError(f"{term} has no value of its own in a rule of located relations")


def compare(name: str) -> Callable[[Any, Any], bool]:
    """Return the comparison of that name; text compares by bytes."""
    function = _COMPARISONS[name]

    def compared(left: Any, right: Any) -> bool:
        if isinstance(left, str) and isinstance(right, str) and name not in ("=", "!="):
            return bool(function(left.encode(), right.encode()))
        return bool(function(left, right))

    return compared


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _whole(function: Callable[..., int]) -> Callable[[Sequence[Any]], int]:
    def computed(values: Sequence[Any]) -> int:
        found = function(*values)
        if not _LEAST <= found <= _GREATEST:
            raise NoValueError
        return found

    return computed


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise NoValueError
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


_FUNCTIONS: Mapping[tuple[str, int | None], Callable[[Sequence[Any]], Any]] = {
    ("+", 2): _whole(operator.add),
    ("-", 2): _whole(operator.sub),
    ("*", 2): _whole(operator.mul),
    ("/", 2): _whole(_quotient),
    ("%", 2): _whole(_remainder),
    ("neg", 1): _whole(operator.neg),
    ("min", None): lambda values: min(values),
    ("max", None): lambda values: max(values),
    ("cat", None): lambda values: "".join(values),
    ("strlen", 1): lambda values: len(values[0]),
}
