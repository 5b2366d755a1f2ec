"""A total order over the plain values that may be keys or elements, the same on every machine."""

from __future__ import annotations

from typing import Any


def canonical_order(value: Any) -> tuple[str, Any]:
    """Return a sort key: by type's name, then by value; tuples part by part, other things as they print.

    Intuitively, ties must be broken alike everywhere, and Python refuses to compare 1 with "a".
    """
    match value:
        case tuple():
            return "tuple", tuple(canonical_order(part) for part in value)
        case bool() | int() | float() | str() | bytes():
            return type(value).__name__, value
        case _:
            return type(value).__name__, repr(value)
