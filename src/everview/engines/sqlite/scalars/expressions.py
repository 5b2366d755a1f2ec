"""Scalar expressions as SQLite SQL that agrees with the reference, value and type.

A failing call is an arm that calls `ev_fail` (NULL, counted) or, with `strict`, `ev_raise`; what SQL
says exactly is SQL, and the rest are the functions that `functions.register` puts on a connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from everview.engines.sqlite.scalars.arithmetic import CHAINED, chain_sql
from everview.engines.sqlite.scalars.conversions import cast_sql, integer_behind
from everview.engines.sqlite.scalars.dispatch import call_sql
from everview.engines.sqlite.scalars.fragments import Operand, Writer
from everview.engines.sqlite.scalars.literals import literal_sql
from everview.engines.sqlite.scalars.storage import store_value
from everview.engines.sqlite.scalars.whole import is_deep, whole_sql
from everview.language.aggregates import SortKey
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
    can_fail,
)
from everview.language.types import Type

__all__ = ["bind_parameters", "compile_expression", "parameter_name", "sort_key_sql", "sortable"]


def compile_expression(expression: Expression, columns: Sequence[str], *, strict: bool = False) -> str:
    """The SQL of an expression over a row whose columns are read by these texts.

    The texts are column references: they may be repeated. With `strict` a failure raises.
    """
    compiler = _Compiler(columns, Writer(strict=strict))
    sql = compiler.operand(expression).sql
    if is_deep(sql):
        return whole_sql(expression, lambda atom: compiler.operand(atom).sql, strict=strict)
    return sql


def sortable(sql: str) -> str:
    """The text as a term of ORDER BY, where a bare number would mean a position; constants sort nothing."""
    return "NULL" if sql.strip("()-").isdigit() else sql


def sort_key_sql(key: SortKey, columns: Sequence[str], *, strict: bool = False) -> str:
    """A term of ORDER BY: direction and place of NULLs written out, NaN greatest by its stored form."""
    direction = "DESC" if key.descending else "ASC"
    nulls = "FIRST" if key.nulls_first else "LAST"
    term = sortable(compile_expression(key.expression, columns, strict=strict))
    return f"{term} {direction} NULLS {nulls}"


def parameter_name(parameter: Parameter) -> str:
    """The name under which a parameter is bound, without its colon.

    A parameter may be used with two types, whose stored forms differ, so the type is part of the name.
    """
    kind = str(parameter.type).translate({ord("("): "_", ord(","): "_", ord(")"): None}).lower()
    return f"p_{parameter.name}_{kind}"


def bind_parameters(values: Mapping[Parameter, Any]) -> dict[str, Any]:
    """What `sqlite3` is given for these parameters, whose values are in their one form."""
    return {parameter_name(one): store_value(value, one.type) for one, value in values.items()}


_LONGEST_CHAIN = 60


def _is_link(call: Call, kind: Type) -> bool:
    return call.function in CHAINED[kind] and all(part.type == kind for part in (call, *call.arguments))


class _Compiler:
    def __init__(self, columns: Sequence[str], writer: Writer) -> None:
        self._columns = columns
        self._writer = writer

    def operand(self, expression: Expression) -> Operand:
        """The expression as SQL, which binds tighter than any operator."""
        match expression:
            case Column(index, kind):
                return Operand(self._columns[index], kind, repeatable=True)
            case Literal(value, kind):
                return Operand(literal_sql(value, kind), kind, repeatable=True, literal=expression)
            case Parameter():
                return Operand(f":{parameter_name(expression)}", expression.type, repeatable=True)
            case Cast(operand, kind):
                inner = self.operand(operand)
                return Operand(
                    cast_sql(self._writer, expression, inner), kind, integer=integer_behind(inner, kind)
                )
            case _:
                return Operand(self._sql(expression), expression.type)

    def _sql(self, expression: Expression) -> str:
        match expression:
            case Call(_, _, kind) if kind in CHAINED and _is_link(expression, kind):
                return self._chain(expression)
            case Call(_, arguments):
                return call_sql(self._writer, expression, [self.operand(part) for part in arguments])
            case And(arguments):
                return self._junction("AND", arguments)
            case Or(arguments):
                return self._junction("OR", arguments)
            case Not(operand):
                return f"(NOT {self.operand(operand).sql})"
            case IsNull(operand):
                return f"({self.operand(operand).sql} IS NULL)"
            case IsDistinct(left, right):
                return f"({self.operand(left).sql} IS NOT {self.operand(right).sql})"
            case InList(operand, items):
                return self._in_list(operand, items)
            case Case(branches, default):
                arms = " ".join(
                    f"WHEN {self.operand(condition).sql} THEN {self.operand(result).sql}"
                    for condition, result in branches
                )
                return f"(CASE {arms} ELSE {self.operand(default).sql} END)"
            case Exists() | InSubquery() | ScalarSubquery() | OuterColumn():
                raise AssertionError(f"{type(expression).__name__}: a planner rule makes joins of subqueries")
            case Column() | Literal() | Parameter() | Cast():
                raise AssertionError("written by `operand`")
            case _:
                assert_never(expression)

    def _chain(self, call: Call) -> str:
        """A call of +, −, × and all such calls down its left side."""
        operators: list[str] = []
        right: list[Expression] = []
        left: Expression = call
        while len(right) < _LONGEST_CHAIN and isinstance(left, Call) and _is_link(left, call.type):
            operators.insert(0, left.function)
            left, last = left.arguments
            right.insert(0, last)
        terms = [self.operand(term) for term in (left, *right)]
        return chain_sql(self._writer, operators, terms)

    def _in_list(self, operand: Expression, items: Sequence[Expression]) -> str:
        """IN; SQLite leaves items out once it knows the answer, so what may fail is computed before."""
        parts = [self.operand(part) for part in (operand, *items)]
        if not any(map(can_fail, items)):
            return f"({parts[0].sql} IN ({', '.join(part.sql for part in parts[1:])}))"
        return self._writer.let(parts, lambda first, *rest: f"{first} IN ({', '.join(rest)})")

    def _junction(self, word: str, arguments: Sequence[Expression]) -> str:
        """AND or OR.

        SQLite may evaluate the arguments of these in any order, in WHERE above all. Where a failure
        would raise, order is meaning: there CASE keeps what stands to the right from being read.
        """
        if not arguments:
            return "1" if word == "AND" else "0"
        if not self._writer.strict or not any(map(can_fail, arguments)):
            return "(" + f" {word} ".join(self.operand(argument).sql for argument in arguments) + ")"
        first, *rest = arguments
        if not rest:
            return self.operand(first).sql
        decided = "NOT {0}" if word == "AND" else "{0}"
        answer = "0" if word == "AND" else "1"
        return self._writer.let(
            [self.operand(first)],
            lambda left: (
                f"CASE WHEN {decided.format(left)} THEN {answer} "
                f"ELSE {left} {word} {self._junction(word, rest)} END"
            ),
        )
