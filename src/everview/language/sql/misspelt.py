"""Misspelt keywords. SELEC is read as a name, so the error comes a few words later; here it is found."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from sqlglot.tokenizer_core import TokenType

from everview.language.sql.dialect import Token

__all__ = ["misspelt"]

# fmt: off
_KEYWORDS = [
    "CREATE", "TABLE", "MATERIALIZED", "VIEW", "PRIMARY", "WITH", "RECURSIVE", "SELECT", "DISTINCT", "FROM",
    "WHERE", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "USING", "GROUP", "ORDER",
    "HAVING", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "BETWEEN", "LIKE", "EXISTS", "CASE", "WHEN",
    "THEN", "ELSE", "FILTER", "PARTITION", "OVER", "INSERT", "INTO", "VALUES", "UPDATE", "DELETE", "NULL",
]
# fmt: on

_LOOK_BACK, _LEAST_LETTERS, _NEAR = 4, 4, 0.75


def misspelt(before: Sequence[Token]) -> str | None:
    """A hint, if one of the last few tokens up to a syntax error is nearly a keyword."""
    for token in reversed(before[-_LOOK_BACK:]):
        if token.token_type is TokenType.VAR and len(token.text) >= _LEAST_LETTERS:
            close = get_close_matches(token.text.upper(), _KEYWORDS, n=1, cutoff=_NEAR)
            if close:
                return f"did you mean {close[0]} instead of {token.text}?"
    return None
