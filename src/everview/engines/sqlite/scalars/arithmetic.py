"""Arithmetic on BIGINT and DOUBLE.

SQLite turns an overflow of integers into REAL, in silence: `typeof` finds it. NaN is stored as text,
which SQLite's arithmetic takes for 0, and a result that would be NaN becomes NULL: so plain SQL serves
finite operands with a finite result, and whatever else there is goes to the reference's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.engines.sqlite.scalars.fragments import Operand, Writer
from everview.language.expressions import Call
from everview.language.types import BIGINT, BIGINT_MIN, DOUBLE, Type

__all__ = ["BIGINTS", "CHAINED", "DOUBLES", "Implementation", "chain_sql", "nearest_even_sql"]

Implementation = Callable[[Writer, Call, Sequence[Operand]], str]

CHAINED: dict[Type, str] = {BIGINT: "+-*", DOUBLE: "+-*/"}
"""The operators that `chain_sql` takes, by the one type of all operands."""

_LEAST = f"({BIGINT_MIN})"
_INFINITY = "9e999"
_WHOLE = f"{1 << 52}.0"
"""From here on every double is a whole number."""


def chain_sql(writer: Writer, operators: Sequence[str], operands: Sequence[Operand]) -> str:
    """`a + b - c * …` from left to right, each step checked, over BIGINTs or over DOUBLEs.

    A chain is written as one, for SQLite's parser takes only some eight subqueries inside each other. An
    overflow shows at the end: REAL, or a number that is not finite, stays so in all that follows.
    """
    write = _bigint_chain if operands[0].type == BIGINT else _double_chain
    return writer.let(operands, lambda *names: write(writer, operators, names))


def _prefixes(operators: Sequence[str], names: Sequence[str]) -> list[str]:
    """The chain's first one, two, … steps; the last is the whole."""
    written = [names[0]]
    for index, (operator, name) in enumerate(zip(operators, names[1:], strict=True)):
        loose = index > 0 and operator in "*/" and operators[index - 1] in "+-"
        before = f"({written[-1]})" if loose else written[-1]
        written.append(f"{before} {operator} {name}")
    return written[1:]


def _bigint_chain(writer: Writer, operators: Sequence[str], names: Sequence[str]) -> str:
    *before, whole = _prefixes(operators, names)
    overflow = writer.fail("the result does not fit BIGINT")
    arms = f"CASE typeof({whole}) WHEN 'real' THEN {overflow}"
    if before:
        # The chain is NULL: did it overflow before it met the NULL?
        steps = ", ".join(f"typeof({step})" for step in before)
        arms += f" WHEN 'null' THEN CASE WHEN 'real' IN ({steps}) THEN {overflow} END"
    return f"{arms} ELSE {whole} END"


def _double_chain(writer: Writer, operators: Sequence[str], names: Sequence[str]) -> str:
    """Adding 0.0 turns −0.0 into 0.0.

    Of the operands only NaN and +Infinity are looked for: with −Infinity the result is not finite
    either, or it is a quotient by it, which is 0.
    """
    whole = _prefixes(operators, names)[-1]
    known = " AND ".join([*(f"{name} < {_INFINITY}" for name in names), f"abs({whole}) < {_INFINITY}"])
    slow = f"{'ev_chain_strict' if writer.strict else 'ev_chain'}('{''.join(operators)}', {', '.join(names)})"
    if len(names) == 2:
        slow = f"CASE WHEN {names[0]} IS NOT NULL AND {names[1]} IS NOT NULL THEN {slow} END"
    return f"CASE WHEN {known} THEN {whole} + 0.0 ELSE {slow} END"


def _chain_of_one(operator: str) -> Implementation:
    return lambda writer, _call, operands: chain_sql(writer, [operator], operands)


def _divide(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    divisor = operands[1].constant
    if divisor is not None and divisor not in (0, -1):
        return f"({operands[0].sql} / {operands[1].sql})"
    return writer.let(
        operands,
        lambda left, right: (
            f"CASE WHEN {right} > 0 OR {right} < -1 THEN {left} / {right} "
            f"WHEN {left} IS NULL OR {right} IS NULL THEN NULL "
            f"WHEN {right} = 0 THEN {writer.fail('division by zero')} "
            f"WHEN {left} = {_LEAST} THEN {writer.fail('/: the result does not fit BIGINT')} "
            f"ELSE -{left} END"
        ),
    )


def _remainder(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    if operands[1].constant:
        return f"({operands[0].sql} % {operands[1].sql})"
    return writer.let(
        operands,
        lambda left, right: (
            f"CASE WHEN {right} <> 0 THEN {left} % {right} "
            f"WHEN {left} IS NOT NULL AND {right} = 0 THEN {writer.fail('division by zero')} END"
        ),
    )


def _negate(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    overflow = writer.fail("neg: the result does not fit BIGINT")
    return writer.let(operands, lambda a: f"CASE {a} WHEN {_LEAST} THEN {overflow} ELSE -{a} END")


def _absolute(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    overflow = writer.fail("abs: the result does not fit BIGINT")
    return writer.let(
        operands, lambda a: f"CASE WHEN {a} = {_LEAST} THEN {overflow} WHEN {a} < 0 THEN -{a} ELSE {a} END"
    )


BIGINTS: dict[str, Implementation] = {
    "+": _chain_of_one("+"),
    "-": _chain_of_one("-"),
    "*": _chain_of_one("*"),
    "/": _divide,
    "%": _remainder,
    "neg": _negate,
    "abs": _absolute,
}


def _unless_nan(body: Callable[[str], str]) -> Implementation:
    """A function that keeps NaN (text, so greater than Infinity) and NULL."""
    return lambda writer, _call, operands: writer.let(
        operands, lambda a: f"CASE WHEN {a} <= {_INFINITY} THEN {body(a)} ELSE {a} END"
    )


def nearest_even_sql(number: str) -> str:
    """The nearest whole number, half to even, of a number below 2^52.

    Adding and taking away 2^52 leaves no room for a fraction, so the addition itself rounds.
    """
    return (
        f"CASE WHEN {number} < 0.0 THEN ({number} - {_WHOLE}) + {_WHOLE} "
        f"ELSE ({number} + {_WHOLE}) - {_WHOLE} END"
    )


def _if_small(body: Callable[[str], str]) -> Implementation:
    """A function that changes only numbers with a fraction."""
    return lambda writer, _call, operands: writer.let(
        operands,
        lambda a: f"CASE WHEN {a} > -{_WHOLE} AND {a} < {_WHOLE} THEN {body(a)} ELSE {a} END",
    )


def _sqrt(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    return writer.let(
        operands,
        lambda a: (
            f"CASE WHEN {a} BETWEEN 0.0 AND {_INFINITY} THEN ev_sqrt({a}) "
            f"ELSE {writer.call(call, [Operand(a, DOUBLE)])} END"
        ),
    )


def _by_reference(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    return writer.call(call, operands)


def _sign(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    """NaN is neither above nor below 0, so its sign is 0; as text it would be above."""
    return writer.let(operands, lambda a: f"({a} > 0.0 AND {a} <= {_INFINITY}) - ({a} < 0.0) + 0.0")


DOUBLES: dict[str, Implementation] = {
    "+": _chain_of_one("+"),
    "-": _chain_of_one("-"),
    "*": _chain_of_one("*"),
    "/": _chain_of_one("/"),
    "neg": _unless_nan(lambda a: f"0.0 - {a}"),
    "abs": _unless_nan(lambda a: f"abs({a})"),
    "sign": _sign,
    "round": _if_small(nearest_even_sql),
    "floor": _if_small(lambda a: f"CAST({a} AS INTEGER) - ({a} < CAST({a} AS INTEGER)) + 0.0"),
    "ceil": _if_small(lambda a: f"CAST({a} AS INTEGER) + ({a} > CAST({a} AS INTEGER)) + 0.0"),
    "sqrt": _sqrt,
    "power": _by_reference,
    "sketch_step": lambda _writer, _call, operands: f"ev_sketch_step({operands[0].sql})",
}
