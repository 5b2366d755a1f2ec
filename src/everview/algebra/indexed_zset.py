"""Indexed Z-sets: a Z-set arranged by a key, for joins and groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from everview.algebra.laws import Group
from everview.algebra.zset import ZSet

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Hashable)


class IndexedZSet(Generic[K, R]):
    """Key → Z-set; a key that is missing has the empty one. An abelian group, key by key."""

    __slots__ = ("_groups",)

    def __init__(self, groups: dict[K, ZSet[R]] | None = None) -> None:
        self._groups = {key: group for key, group in (groups or {}).items() if group}

    @classmethod
    def index(cls, zset: ZSet[R], key: Callable[[R], K]) -> IndexedZSet[K, R]:
        """Arrange a Z-set by `key`. Linear: the index of a change is the change of the index."""
        parts: dict[K, list[tuple[R, int]]] = {}
        for row, weight in zset.items():
            parts.setdefault(key(row), []).append((row, weight))
        return cls({of: ZSet(part) for of, part in parts.items()})

    def flatten(self) -> ZSet[R]:
        """Return the Z-set without its arrangement."""
        return ZSet(pair for group in self._groups.values() for pair in group.items())

    def __getitem__(self, key: K) -> ZSet[R]:
        return self._groups.get(key, ZSet())

    def __iter__(self) -> Iterator[K]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __add__(self, other: IndexedZSet[K, R]) -> IndexedZSet[K, R]:
        if not isinstance(other, IndexedZSet):
            return NotImplemented
        return IndexedZSet({key: self[key] + other[key] for key in {*self, *other}})

    def __neg__(self) -> IndexedZSet[K, R]:
        return IndexedZSet({key: -self[key] for key in self})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexedZSet) and self._groups == other._groups

    def __hash__(self) -> int:
        return hash(frozenset(self._groups.items()))

    def __repr__(self) -> str:
        return f"IndexedZSet({self._groups!r})"


@dataclass(frozen=True, slots=True)
class IndexedZSets(Group[IndexedZSet[K, R]], Generic[K, R]):
    """The abelian group of indexed Z-sets."""

    def zero(self) -> IndexedZSet[K, R]:
        """Return the empty change."""
        return IndexedZSet()

    def plus(self, a: IndexedZSet[K, R], b: IndexedZSet[K, R], /) -> IndexedZSet[K, R]:
        """Return a + b."""
        return a + b

    def negate(self, a: IndexedZSet[K, R], /) -> IndexedZSet[K, R]:
        """Return −a."""
        return -a
