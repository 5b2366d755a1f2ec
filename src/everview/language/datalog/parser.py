"""From the text of a Datalog program to its tree; errors say the line and the column."""

from __future__ import annotations

import functools
from typing import Any

import lark

from everview.errors import ProgramError
from everview.language.datalog.ast import Declaration, Directive, Rule, Text, TypeName
from everview.language.datalog.grammar import GRAMMAR
from everview.language.datalog.reader import error_at, reader

__all__ = ["error_at", "parse"]


def parse(text: str) -> Text:
    """The tree of a program."""
    try:
        statements = _parser().parse(text)
    except lark.exceptions.UnexpectedToken as error:
        raise _unexpected(text, error) from None
    except lark.exceptions.UnexpectedCharacters as error:
        position: Any = error.pos_in_stream
        raise _stray(text, position, error.line, error.column) from None
    except lark.exceptions.VisitError as error:
        raise error.orig_exc from None
    flat = [part for statement in statements for part in statement]
    return Text(
        tuple(part for part in flat if isinstance(part, TypeName)),
        tuple(part for part in flat if isinstance(part, Declaration)),
        tuple(part for part in flat if isinstance(part, Directive)),
        tuple(part for part in flat if isinstance(part, Rule)),
    )


@functools.cache
def _parser() -> Any:
    return lark.Lark(GRAMMAR, parser="lalr", transformer=reader(), maybe_placeholders=True)


_SAYS = {
    "DOT": "a full stop",
    "RPAR": ")",
    "RBRACE": "}",
    "COLON": ":",
    "NAME": "a name",
    "TYPE_WORD": "a type",
}


def _unexpected(text: str, error: Any) -> ProgramError:
    token = error.token
    if token.type == "$END":
        wanted = next((_SAYS[name] for name in _SAYS if name in error.accepts | set(error.expected)), None)
        message = "syntax error: the text ends in the middle of a statement"
        hint = f"{wanted} is missing" if wanted else None
        return ProgramError(message, line=max(token.line, 1), column=max(token.column, 1), hint=hint)
    hint = "a rule ends with a full stop" if "DOT" in error.expected else None
    return _stray(text, token.start_pos, token.line, token.column, word=str(token), hint=hint)


def _stray(
    text: str, position: int, line: int, column: int, *, word: str = "", hint: str | None = None
) -> ProgramError:
    rest = text[position:]
    message = f"syntax error at {word or rest[:1]!r}: this is not expected here"
    if rest.startswith('"') and not word.endswith('"'):
        message = "syntax error: the string that begins here is never closed"
    elif rest.startswith("/*"):
        message = "syntax error: the comment that begins here is never closed"
    elif rest.startswith("'"):
        hint = 'symbols are written in double quotes: "a"'
    elif rest.startswith(("$", "[")):
        hint = "records, and numbers made up by $, are not supported"
    elif rest.startswith(".") and rest[1:2].isalpha():
        hint = "the directives are .decl, .type, .input, .output and .printsize"
    return ProgramError(message, line=line, column=column, hint=hint)
