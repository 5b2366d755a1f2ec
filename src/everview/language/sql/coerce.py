"""Implicit conversions, made explicit: after this every operand has the type its operator takes.

A quoted literal, NULL or parameter has no type until its context gives it one, as in PostgreSQL;
without a context it is TEXT.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence

from sqlglot import exp

from everview.language.casts import CastError, can_cast, cast_value
from everview.language.expressions import Call, Cast, Column, Expression, Literal, Parameter
from everview.language.functions import FUNCTIONS, NoSignatureError, resolve
from everview.language.plan import Plan, Project, Values, types_of
from everview.language.sql.source import Source
from everview.language.types import (
    BIGINT,
    DECIMAL_DIGITS,
    TEXT,
    UNKNOWN,
    Kind,
    Type,
    common_type,
    decimal_type,
    is_implicit,
)

__all__ = ["call", "cast", "coerce", "natural_decimal", "output_as", "settled", "unify"]


def natural_decimal(value: decimal.Decimal) -> Literal | None:
    """A number written out, as the smallest DECIMAL that holds it; None if 38 digits are too few."""
    exponent = int(value.as_tuple().exponent)
    scale = max(-exponent, 0)
    whole = max(value.adjusted() + 1, 0) if value else 0
    if whole + scale > DECIMAL_DIGITS:
        return None
    kind = decimal_type(whole + scale, scale)
    return Literal(cast_value(value, UNKNOWN, kind), kind)


def cast(source: Source, node: exp.Expr, operand: Expression, target: Type) -> Expression:
    """CAST(operand AS target); of a literal, the literal of that type."""
    if operand.type == target:
        return operand
    if isinstance(operand, Parameter) and operand.type == UNKNOWN:
        return Parameter(operand.name, target)
    if not can_cast(operand.type, target):
        raise source.error(node, f"there is no cast from {operand.type} to {target}")
    if isinstance(operand, Literal):
        try:
            return Literal(cast_value(operand.value, operand.type, target), target)
        except CastError as error:
            if operand.type == UNKNOWN:
                raise source.error(node, str(error)) from None
    return Cast(operand, target)


def coerce(source: Source, node: exp.Expr, operand: Expression, target: Type, *, what: str) -> Expression:
    """The operand as `target` without being asked: only conversions that lose nothing but precision."""
    if not is_implicit(operand.type, target):
        raise source.error(
            node, f"{what} takes {target}, not {operand.type}", hint=f"write CAST(… AS {target})"
        )
    return cast(source, node, operand, target)


def settled(source: Source, node: exp.Expr, expression: Expression) -> Expression:
    """The expression with a type: TEXT where nothing says otherwise."""
    return cast(source, node, expression, TEXT) if expression.type == UNKNOWN else expression


def unify(
    source: Source, nodes: Sequence[exp.Expr], operands: Sequence[Expression], *, what: str
) -> tuple[Expression, ...]:
    """All operands as their common type."""
    operands = _typed_beside(operands)
    common = operands[0].type
    for node, operand in zip(nodes, operands, strict=True):
        both = common_type(common, operand.type)
        if both is None:
            raise source.error(
                node, f"{what}: {common} and {operand.type} have no common type", hint="write a CAST"
            )
        common = both
    if common == UNKNOWN:
        common = TEXT
    return tuple(cast(source, node, operand, common) for node, operand in zip(nodes, operands, strict=True))


def call(
    source: Source,
    node: exp.Expr,
    name: str,
    arguments: Sequence[Expression],
    *,
    nodes: Sequence[exp.Expr] | None = None,
) -> Call:
    """A call of a function of ours, its arguments cast to the signature that fits best.

    `nodes` are the trees of the arguments, to point at when one of them is to blame.
    """
    if name != "round":  # its second argument counts digits, and stays a whole number
        arguments = _typed_beside(arguments)
    if name == "||":
        arguments = _as_text_beside_text(source, node, arguments)
    try:
        targets, result = resolve(name, tuple(argument.type for argument in arguments))
    except NoSignatureError as error:
        raise source.error(node, str(error), hint=_advice(name, arguments)) from None
    parts = zip(nodes or [node] * len(targets), arguments, targets, strict=True)
    return Call(name, tuple(cast(source, part, argument, target) for part, argument, target in parts), result)


def _advice(name: str, arguments: Sequence[Expression]) -> str | None:
    kinds = [argument.type.kind for argument in arguments]
    if name == "-" and kinds == [Kind.TIMESTAMP, Kind.TIMESTAMP]:
        return "write extract(epoch FROM a) - extract(epoch FROM b)"
    if name == "round" and len(kinds) == 2:
        return "cast the number to DECIMAL first"
    if name == "%" and Kind.DOUBLE in kinds:
        return "cast to DECIMAL or BIGINT first"
    if len(set(kinds)) > 1 and (FUNCTIONS[name].unified is not None or not name.isidentifier()):
        return "write a CAST"
    return None


def _typed_beside(operands: Sequence[Expression]) -> Sequence[Expression]:
    """Untyped operands beside a DECIMAL become DECIMALs that lose no digits, whole numbers small ones."""
    decimals = [operand.type for operand in operands if operand.type.kind is Kind.DECIMAL]
    if not decimals:
        return operands
    typed: list[Expression] = []
    for operand in operands:
        match operand:
            case Parameter(name, kind) if kind == UNKNOWN:
                scale = max(10, *(other.digits[1] for other in decimals))
                typed.append(Parameter(name, decimal_type(DECIMAL_DIGITS, scale)))
            case Literal(str() as text, kind) if kind == UNKNOWN:
                typed.append(_number(text) or operand)
            case Literal(int() as number, kind) if kind == BIGINT:
                typed.append(natural_decimal(decimal.Decimal(number)) or operand)
            case _:
                typed.append(operand)
    return typed


def _number(text: str) -> Literal | None:
    try:
        value = decimal.Decimal(text.strip())
    except decimal.InvalidOperation:
        return None
    return natural_decimal(value) if value.is_finite() else None


def _as_text_beside_text(
    source: Source, node: exp.Expr, arguments: Sequence[Expression]
) -> Sequence[Expression]:
    kinds = {argument.type.kind for argument in arguments}
    if Kind.BLOB in kinds or not kinds & {Kind.TEXT, Kind.UNKNOWN}:
        return arguments
    return [cast(source, node, argument, TEXT) for argument in arguments]


def output_as(source: Source, node: exp.Expr, plan: Plan, types: Sequence[Type]) -> Plan:
    """The plan with its columns cast to these types; what has no type yet takes it in place."""
    if types_of(plan) == tuple(types):
        return plan
    if isinstance(plan, Project):
        items = zip(plan.expressions, types, strict=True)
        casted = tuple(cast(source, node, expression, target) for expression, target in items)
        return Project(plan.input, casted, plan.names)
    if isinstance(plan, Values):
        rows = tuple(
            tuple(cast(source, node, cell, target) for cell, target in zip(row, types, strict=True))
            for row in plan.rows
        )
        fields = zip(plan.schema, types, strict=True)
        return Values(tuple(type(f)(f.name, target, f.nullable) for f, target in fields), rows)
    columns = (Column(index, field.type, field.name) for index, field in enumerate(plan.schema))
    casted = tuple(cast(source, node, column, target) for column, target in zip(columns, types, strict=True))
    return Project(plan, casted, tuple(field.name for field in plan.schema))
