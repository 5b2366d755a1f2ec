"""Partitions: which part of a stage an element or a key belongs to, in every process the same."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from everview.algebra import checks
from everview.errors import DataError
from everview.streams.pipelines.keys import stable_hash

__all__ = ["ByElement", "ByKey", "Partitioning", "by_element", "by_key"]


@dataclass(frozen=True, slots=True)
class ByKey:
    """`count` partitions by key: all of a key is in one of them.

    A function of the key may say which: keys for which it gives the same are together. A whole number is
    taken modulo `count`, anything else is hashed.
    """

    count: int = 1
    function: Callable[[Any], Hashable] | None = None

    def __post_init__(self) -> None:
        _check(self.count, self.function)

    def of_key(self, key: Any) -> int:
        """Return the partition of a key, from 0 to `count` − 1."""
        if self.count == 1:
            return 0
        return _place(key, self.count) if self.function is None else _given(self.function(key), self.count)


@dataclass(frozen=True, slots=True)
class ByElement:
    """`count` partitions by a function of the element: a key may have a part in each of them."""

    count: int
    function: Callable[[Any], Hashable]

    def __post_init__(self) -> None:
        _check(self.count, self.function)

    def of_element(self, element: Any) -> int:
        """Return the partition of an element, from 0 to `count` − 1."""
        return _given(self.function(element), self.count)


Partitioning = ByKey | ByElement


def by_key(count: int, function: Callable[[Any], Hashable] | None = None) -> ByKey:
    """`count` partitions by key, or by a function of the key."""
    return ByKey(count, function)


def by_element(count: int, function: Callable[[Any], Hashable]) -> ByElement:
    """`count` partitions by a function of the element, which may scatter a key over them."""
    return ByElement(count, function)


def checked_part(parts: Partitioning, part: int, key: Any) -> int:
    """Return the partition of a key that came with one: by key it is computed, by element it is believed."""
    if isinstance(parts, ByKey):
        return parts.of_key(key)
    if type(part) is not int or not 0 <= part < parts.count:
        raise DataError(f"there is no partition {part!r}, only 0 to {parts.count - 1}", value=part)
    return part


def as_partitioning(given: int | Partitioning) -> Partitioning:
    """Return a partitioning; a number means so many, by key."""
    return given if isinstance(given, ByKey | ByElement) else ByKey(given)


@functools.lru_cache(maxsize=1 << 18)  # keys come again and again
def _place(key: Any, count: int) -> int:
    return stable_hash(key) % count


def _given(value: Any, count: int) -> int:
    return value % count if type(value) is int else _place(value, count)


def _check(count: int, function: Any) -> None:
    checks.positive(count, "the number of partitions")
    if function is not None and not callable(function):
        raise DataError(f"a partition function must be callable, not {function!r}", value=function)
