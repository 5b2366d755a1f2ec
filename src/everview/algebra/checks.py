"""Checks of plain values at the algebra's door, with errors that say what was expected."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from everview.errors import DataError


def natural(value: Any, what: str) -> int:
    """Return `value` if it is an int ≥ 0."""
    if type(value) is not int:
        raise DataError(f"{what} must be an int, not {_shown(value)}", value=value, expected="int")
    if value < 0:
        raise DataError(f"{what} must not be negative, but is {value}", value=value, expected="int ≥ 0")
    return value


def positive(value: Any, what: str) -> int:
    """Return `value` if it is an int ≥ 1."""
    if natural(value, what) == 0:
        raise DataError(f"{what} must be at least 1", value=value, expected="int ≥ 1")
    return int(value)


def integer(value: Any, what: str) -> int:
    """Return `value` if it is an int; a bool is not one."""
    if type(value) is not int:
        raise DataError(f"{what} must be an int, not {_shown(value)}", value=value, expected="int")
    return value


def hashable(value: Any, what: str) -> Hashable:
    """Return `value` if it can be an element of a set; a NaN, which equals nothing, cannot."""
    if isinstance(value, float) and math.isnan(value):
        raise DataError(f"{what} must not be NaN, which is not equal to itself", value=value)
    try:
        hash(value)
    except TypeError:
        raise DataError(
            f"{what} must be hashable, not {_shown(value)}", value=value, expected="hashable"
        ) from None
    return value  # type: ignore[no-any-return]  # hash() has just shown that it is Hashable


def name(value: Any, what: str) -> str:
    """Return `value` if it is a non-empty str."""
    if not isinstance(value, str) or not value:
        raise DataError(f"{what} must be a non-empty str, not {_shown(value)}", value=value, expected="str")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
