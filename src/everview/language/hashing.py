"""Frozen nodes that are hashed once.

A node's hash is over all that is below it, and plans are looked up again and again: in what is known of keys,
in what is compiled already, in what views share. So each remembers its own, and asks only its children, which
remember theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["HashedOnce", "hashed_once"]

_Node = TypeVar("_Node", bound="HashedOnce")


class HashedOnce:
    """Has a place for its hash, which is no field: it is neither compared nor sent to other processes."""

    __slots__ = ("_hash",)
    _hash: int


def hashed_once(node: type[_Node]) -> type[_Node]:
    """Have a frozen dataclass compute its hash when it is first asked for."""
    computed: Callable[[_Node], int] = node.__hash__

    def remembered(self: _Node) -> int:
        try:
            return self._hash
        except AttributeError:
            found = computed(self)
            object.__setattr__(self, "_hash", found)
            return found

    node.__hash__ = remembered  # type: ignore[assignment, method-assign]
    return node
