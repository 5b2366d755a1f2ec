"""Stored values written into SQL text, to be read back bit for bit."""

from __future__ import annotations

import math
from typing import Any

from everview.engines.sqlite.scalars.storage import store_value
from everview.language.types import Type

__all__ = ["literal_sql", "stored_literal", "text_literal"]

_SAFE_DIGITS = 15
_SAFE_EXPONENT = 22


def literal_sql(value: Any, target: Type) -> str:
    """The stored form of a value of type `target`, as an SQL literal."""
    return stored_literal(store_value(value, target))


def stored_literal(stored: Any) -> str:
    """A stored value as an SQL literal; negative numbers stand in parentheses."""
    match stored:
        case None:
            return "NULL"
        case bool() | int():
            number = int(stored)
            return f"({number})" if number < 0 else str(number)
        case float():
            return _double(stored)
        case bytes():
            return f"x'{stored.hex()}'"
        case str():
            return text_literal(stored)
        case _:
            raise AssertionError(f"{stored!r} is no stored value")


def text_literal(text: str) -> str:
    """A text in quotes; SQL text ends at U+0000, so a text that holds it goes by its bytes."""
    if "\0" in text:
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def _double(value: float) -> str:
    """A double that SQLite reads as the same double.

    SQLite promises 15 digits only when it reads decimal fractions. So a number whose shortest form is
    short is written that way, and any other as a whole number times powers of two, which is exact.
    """
    if math.isinf(value):
        return "9e999" if value > 0 else "(-9e999)"
    text = repr(value + 0.0)
    mantissa, _, exponent = text.partition("e")
    digits = mantissa.lstrip("-").replace(".", "").strip("0")
    if len(digits) <= _SAFE_DIGITS and abs(int(exponent or 0)) <= _SAFE_EXPONENT - _SAFE_DIGITS:
        return f"({text})" if value < 0 else text
    numerator, denominator = value.as_integer_ratio()
    zeros = (numerator & -numerator).bit_length() - 1
    return f"({numerator >> zeros}.0{_powers('*', zeros)}{_powers('/', denominator.bit_length() - 1)})"


def _powers(operator: str, exponent: int) -> str:
    """` * 2^exponent` (or `/`) in steps that are whole numbers of at most 62 bits."""
    steps = [62] * (exponent // 62) + ([exponent % 62] if exponent % 62 else [])
    return "".join(f" {operator} {1 << step}.0" for step in steps)
