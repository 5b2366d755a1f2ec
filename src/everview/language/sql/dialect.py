"""PostgreSQL's grammar as sqlglot reads it, with functions left as they are written.

sqlglot gives many functions a class of their own and drops how they were called; here only the ones
with a syntax of their own (CAST, EXTRACT, POSITION, SUBSTRING, TRIM) are special, so that every name
reaches our own table of functions and none is accepted or changed on the way.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.postgres import Postgres
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token

__all__ = ["Dialect", "Token"]

_SPECIAL_SYNTAX = ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")


class _Parser(PostgresParser):
    """Calls stay `Anonymous(name, arguments)`; CURRENT_DATE and its like stay names."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parse for name, parse in PostgresParser.FUNCTION_PARSERS.items() if name in _SPECIAL_SYNTAX
    }

    def _warn_unsupported(self) -> None:
        """Silence: a statement that sqlglot cannot parse is refused by us, with its place."""


class Dialect(Postgres):
    """PostgreSQL without sqlglot's opinions on functions."""

    Parser = _Parser
