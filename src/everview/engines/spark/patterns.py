"""LIKE in Spark SQL, as regular expressions over whole texts.

Spark's own LIKE refuses an escape before an ordinary character, which PostgreSQL takes for the character
itself. A pattern that is written in the program becomes its regular expression when it is compiled; one
that comes with the rows is translated by built-in functions, character by character.
"""

from __future__ import annotations

import re

from everview.engines.spark.text import Names, literal, quoted
from everview.language.expressions import Call, Literal
from everview.language.types import BOOLEAN

__all__ = ["folded", "like"]

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PLAIN = re.compile(r"[A-Za-z0-9 ]")


def folded(text: str) -> str:
    """A–Z become a–z; nothing else changes."""
    return f"translate({text}, '{_UPPER}', '{_UPPER.lower()}')"


def like(names: Names, call: Call, arguments: tuple[str, ...]) -> str:
    """LIKE and ILIKE; NULL when the pattern ends in the escape character."""
    text, pattern, escape = arguments
    any_case = call.function == "ilike"
    if any_case:
        text, pattern, escape = folded(text), folded(pattern), folded(escape)
    _, given, given_escape = call.arguments
    if isinstance(given, Literal) and isinstance(given_escape, Literal):
        if given.value is None or given_escape.value is None:
            return literal(None, BOOLEAN)
        constant = given.value, given_escape.value
        if any_case:
            constant = tuple(part.translate({ord(c): c.lower() for c in _UPPER}) for part in constant)
        expression = _expression(*constant)
        if expression is None:
            # NULL for every text, and nothing for a NULL text to change.
            return literal(None, BOOLEAN)
        return f"({text} RLIKE {quoted(expression)})"
    return names.let((text, pattern, escape), lambda t, p, e: _matched(names, t, p, e))


def _expression(pattern: str, escape: str) -> str | None:
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                return None
            parts.append(_exactly(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or _exactly(character))
    return r"(?s)\A" + "".join(parts) + r"\z"


def _exactly(character: str) -> str:
    return character if _PLAIN.fullmatch(character) else f"\\x{{{ord(character):x}}}"


def _matched(names: Names, text: str, pattern: str, escape: str) -> str:
    """Fold the characters into (expression so far, whether the last one escapes the next)."""
    exactly = r"concat('\\Q', c, '\\E')"
    step = (
        f"CASE WHEN s.open THEN struct(concat(s.e, {exactly}) AS e, false AS open) "
        f"WHEN c = {escape} THEN struct(s.e AS e, true AS open) "
        "WHEN c = '%' THEN struct(concat(s.e, '.*') AS e, false AS open) "
        "WHEN c = '_' THEN struct(concat(s.e, '.') AS e, false AS open) "
        f"ELSE struct(concat(s.e, {exactly}) AS e, false AS open) END"
    )
    finish = r"s -> CASE WHEN NOT s.open THEN concat('(?s)\\A', s.e, '\\z') END"
    expression = (
        f"aggregate(regexp_extract_all({pattern}, '(?s)(.)', 1), "
        f"struct('' AS e, false AS open), (s, c) -> {step}, {finish})"
    )
    return names.let((escape,), lambda e: f"CASE WHEN {e} IS NOT NULL THEN {text} RLIKE {expression} END")
