"""Keys: which are the same, in which order they come, and a hash that is the same in every process.

Keys that Python holds for equal are one key: True is 1, and 1.0 is 1. Python's own `hash` is salted anew in
each process, so partitions go by the CRC-32 of a key's bytes, which Spark computes too.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable
from typing import Any

from everview.streams.pipelines.encoding import decode, encode

Stored = int | str | bytes
"""A key as it is stored and ordered: numbers, then text by code points, then the bytes of all others."""

_SMALL = 2**63


def store_key(key: Any) -> Stored:
    """Return a key as SQLite stores it; `load_key` reads it back."""
    kind = type(key)
    if kind is str:
        return key  # type: ignore[no-any-return]
    if kind is bool:
        return int(key)
    if kind is float and key.is_integer():
        key, kind = int(key), int
    if kind is int and -_SMALL <= key < _SMALL:
        return key  # type: ignore[no-any-return]
    return encode(key)


def load_key(stored: Stored) -> Hashable:
    """Return the key that `store_key` was given, or one that is equal to it."""
    return decode(stored) if type(stored) is bytes else stored


def key_order(key: Any) -> tuple[int, Stored]:
    """Return what to sort keys by: the order in which SQLite has them, for ties that all break alike."""
    return stored_order(store_key(key))


def stored_order(stored: Stored) -> tuple[int, Stored]:
    """Return the same for a key as it is stored."""
    return (0 if type(stored) is int else 1 if type(stored) is str else 2), stored


def stable_hash(key: Any) -> int:
    """Return a hash of a key from 0 to 2³² − 1, the same in every process and on Spark.

    It is the CRC-32 of `s` and a text's UTF-8, of `i` and a number's digits, of `x` and the bytes of another.
    """
    stored = store_key(key)
    if isinstance(stored, str):
        return zlib.crc32(b"s" + stored.encode())
    if isinstance(stored, int):
        return zlib.crc32(b"i%d" % stored)
    return zlib.crc32(b"x" + stored)
