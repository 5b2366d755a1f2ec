"""Ids of base tuples, as text: how a monomial prints them and reads them back."""

from __future__ import annotations

import json
import re
from typing import Any

from everview.errors import DataError

Id = str | bytes | int
"""A name for people, a tuple's hash, or the integer that a store knows the tuple by."""

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.@:/-]*")


def checked_id(value: Any) -> Id:
    """Return `value` if it can be an id."""
    if type(value) not in (str, bytes, int):
        raise DataError(
            f"an id is a str, bytes or int, not {type(value).__name__} {value!r}", value=value, expected="id"
        )
    if value in ("", b""):
        raise DataError("an id must not be empty", value=value, expected="id")
    return value  # type: ignore[no-any-return]  # one of the three types, as just checked


def show_id(value: Id) -> str:
    """Print an id so that `read_id` gives it back: t1, 0xcafe for bytes, #7 for int, "…" for odd names."""
    match value:
        case bytes():
            return f"0x{value.hex()}"
        case int():
            return f"#{value}"
        case str():
            return value if PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def read_id(text: str) -> Id:
    """Read what `show_id` printed."""
    if text.startswith("0x"):
        return bytes.fromhex(text[2:])
    if text.startswith("#"):
        return int(text[1:])
    return checked_id(json.loads(text)) if text.startswith('"') else text


def id_order(value: Id) -> tuple[str, Any]:
    """Return a key that sorts ids of all three types: by type, then by value."""
    return type(value).__name__, value
