"""Terms of rules, to typed expressions over the columns that their variables were bound to."""

from __future__ import annotations

import decimal
from collections.abc import Mapping

from everview.errors import ProgramError
from everview.language.casts import CastError, cast_value
from everview.language.datalog.ast import (
    Aggregate,
    Anonymous,
    Constant,
    Fold,
    Operation,
    Place,
    Term,
    Variable,
)
from everview.language.datalog.parser import error_at
from everview.language.expressions import Call, Cast, Expression, Literal
from everview.language.functions import FUNCTIONS, NOT_DETERMINISTIC, NoSignatureError, resolve
from everview.language.sql.coerce import natural_decimal
from everview.language.sql.source import nearest
from everview.language.types import BIGINT, BIGINT_MAX, BIGINT_MIN, BOOLEAN, TEXT, Kind, Type, is_implicit

__all__ = ["CASTS", "SOUFFLE", "Bindings", "call", "fitted", "term_expression"]

Bindings = Mapping[str, Expression]
"""What each variable is, over the columns of the body so far."""

SOUFFLE = {"cat": "||", "strlen": "length", "min": "least", "max": "greatest", "^": "power"}
CASTS = {"to_string": TEXT, "to_number": BIGINT, "ftoi": BIGINT, "itof": Type(Kind.DOUBLE)}
_FROM_TEXT = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.BLOB})


def term_expression(term: Term, bindings: Bindings) -> Expression:
    """A term whose variables are all bound."""
    match term:
        case Variable(name):
            return bindings[name]
        case Constant():
            return _constant(term)
        case Operation(name, arguments, place):
            return _operation(name, [term_expression(part, bindings) for part in arguments], place)
        case Anonymous(place):
            raise error_at(place, "_ stands for any value, so nothing can be computed from it")
        case Aggregate(place=place) | Fold(place=place):
            raise error_at(place, "an aggregate is not expected here")


def _constant(term: Constant) -> Literal:
    match term.value:
        case bool():
            return Literal(term.value, BOOLEAN)
        case int() as number:
            if not BIGINT_MIN <= number <= BIGINT_MAX:
                raise error_at(term.place, f"{number} is no BIGINT: −2^63 to 2^63 − 1")
            return Literal(number, BIGINT)
        case decimal.Decimal() as number:
            literal = natural_decimal(number)
            if literal is None:
                raise error_at(term.place, f"{number} has more than 38 digits")
            return literal
        case text:
            return Literal(text, TEXT)


def _operation(name: str, arguments: list[Expression], place: Place) -> Expression:
    if name in CASTS:
        if len(arguments) != 1:
            raise error_at(place, f"{name} takes one argument, not {len(arguments)}")
        return Cast(arguments[0], CASTS[name])
    if name == "cat" and len(arguments) > 2:
        rest = _operation(name, arguments[1:], place)
        return call("||", [arguments[0], rest], place)
    if name == "substr" and len(arguments) == 3:  # Soufflé counts from 0
        start = call("+", [arguments[1], Literal(1, BIGINT)], place)
        return call("substr", [arguments[0], start, arguments[2]], place)
    function = SOUFFLE.get(name, name)
    if function in NOT_DETERMINISTIC:
        raise error_at(place, f"{name} depends on when and where it is called")
    if function not in FUNCTIONS:
        hint = nearest(name, [*SOUFFLE, *CASTS, *FUNCTIONS])
        raise error_at(place, f"there is no function {name}", hint=hint)
    return call(function, arguments, place)


def call(name: str, arguments: list[Expression], place: Place) -> Expression:
    """A function or operator of ours, its arguments converted as its signature asks."""
    types = tuple(argument.type for argument in arguments)
    beside = next((kind for kind in types if kind.kind in _FROM_TEXT), None)
    if beside is not None and FUNCTIONS[name].unified is not None:  # a symbol beside a date is a date
        symbols = [isinstance(a, Literal) and a.type == TEXT for a in arguments]
        arguments = [
            fitted(a, beside, "the other side", place) if symbol else a
            for a, symbol in zip(arguments, symbols, strict=True)
        ]
        types = tuple(argument.type for argument in arguments)
    try:
        targets, result = resolve(name, types)
    except NoSignatureError as error:
        raise error_at(place, str(error)) from None
    pairs = zip(arguments, targets, strict=True)
    return Call(name, tuple(_cast(argument, target) for argument, target in pairs), result)


def _cast(expression: Expression, target: Type) -> Expression:
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        try:
            return Literal(cast_value(expression.value, expression.type, target), target)
        except CastError:
            pass
    return Cast(expression, target)


def fitted(expression: Expression, target: Type, what: str, place: Place) -> Expression:
    """The expression as a value of a column, without losing anything but precision."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        from_text = expression.type.kind is Kind.TEXT and target.kind in _FROM_TEXT
        if from_text or (is_implicit(expression.type, target)):
            try:
                return Literal(cast_value(expression.value, expression.type, target), target)
            except CastError as error:
                raise error_at(place, f"{what}: {error}") from None
    if not is_implicit(expression.type, target):
        raise _unfit(what, expression, target, place)
    return Cast(expression, target)


def _unfit(what: str, expression: Expression, target: Type, place: Place) -> ProgramError:
    given = (
        f"{expression.value!r} is {expression.type}" if isinstance(expression, Literal) else expression.type
    )
    return error_at(
        place, f"{what} is {target}, and {'' if isinstance(expression, Literal) else 'not '}{given}"
    )
