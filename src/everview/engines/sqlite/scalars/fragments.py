"""Pieces of SQL while an expression is being written.

A piece that is used several times is computed once: `Writer.let` binds it by a scalar subquery,
`(SELECT … ev_1 … FROM (SELECT piece AS ev_1))`. SQLite runs that as a coroutine of some 70 ns and never
puts the piece back in place of the name, because a subquery without FROM is not flattened. So nested
calls neither grow exponentially nor count a failure twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from everview.engines.sqlite.scalars.literals import text_literal
from everview.language.expressions import Call, Cast, Literal
from everview.language.types import Type

__all__ = ["Operand", "Writer"]


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument as SQL. `repeatable`: a column, a literal or a parameter, free to be written twice."""

    sql: str
    type: Type
    repeatable: bool = False
    literal: Literal | None = None
    integer: tuple[str, int] | None = None
    """For a DECIMAL that was cast from a stored integer: that integer's SQL and scale."""

    @property
    def constant(self) -> Any:
        """The value, if it is written in the program and not NULL; else None."""
        return None if self.literal is None else self.literal.value


class Writer:
    """Writes one expression; with `strict` a failure raises, without it is NULL and counted."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self._names = 0

    def fail(self, what: str) -> str:
        """The arm of a failing call; Python is called only here."""
        return f"{'ev_raise' if self.strict else 'ev_fail'}({text_literal(what)})"

    def let(self, operands: Sequence[Operand], body: Callable[..., str]) -> str:
        """`body` over names of the operands, each of which is computed once."""
        names: list[str] = []
        bindings: list[str] = []
        for operand in operands:
            if operand.repeatable:
                names.append(operand.sql)
            else:
                self._names += 1
                names.append(f"ev_{self._names}")
                bindings.append(f"{operand.sql} AS {names[-1]}")
        written = body(*names)
        if not bindings:
            return f"({written})"
        return f"(SELECT {written} FROM (SELECT {', '.join(bindings)}))"

    def call(self, call: Call, operands: Sequence[Operand]) -> str:
        """The call by the reference's own implementation, where SQL cannot say it exactly."""
        types = ",".join(str(operand.type) for operand in operands)
        signature = text_literal(f"{call.function}|{call.type}|{types}")
        name = "ev_call_strict" if self.strict else "ev_call"
        return f"{name}({', '.join([signature, *(operand.sql for operand in operands)])})"

    def cast(self, cast: Cast, operand: str) -> str:
        """The cast by the language's own implementation, where SQL cannot say it exactly."""
        signature = text_literal(f"{cast.operand.type}|{cast.type}")
        return f"{'ev_cast_strict' if self.strict else 'ev_cast'}({signature}, {operand})"
