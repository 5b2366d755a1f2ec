"""A row is written once and never changes; a digest proves that two stores hold the same rows."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeAlias

from spec.replication.vectors import Dot

Key: TypeAlias = Any  # a key or a tuple: hashable, and ordered among its like

MODULUS = 2**128


@dataclass(frozen=True, slots=True)
class Row:
    """A key or tuple, what its kind keeps with it, and the wall clock of its writer."""

    key: Key
    value: Hashable = None
    stamp: int = 0


Rows: TypeAlias = Mapping[Dot, Row]


@lru_cache(maxsize=100_000)
def fingerprint(dot: Dot, row: Row) -> int:
    """Return a hash of a row and its dot, below 2^128."""
    return int.from_bytes(blake2b(repr((dot, row)).encode(), digest_size=16).digest(), "big")


def digest(rows: Iterable[tuple[Dot, Row]]) -> int:
    """Return the digest of these rows: the sum of their fingerprints.

    A sum can be kept as rows come and go, in any order.
    """
    return sum(fingerprint(dot, row) for dot, row in rows) % MODULUS
