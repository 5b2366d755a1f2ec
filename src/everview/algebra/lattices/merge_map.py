"""MergeMap: a lattice table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

from everview.algebra.laws import Lattice

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class MergeMap(Lattice[Mapping[K, V]], Generic[K, V]):
    """Key → value, joined key by key; a key that is missing stands for ⊥.

    This is the shape of all replicated state: `values` may be any lattice, another MergeMap too. An
    element holds no ⊥, so that equal knowledge is equal by `==`; `canonical` drops those of a plain dict.
    """

    values: Lattice[V]

    def bottom(self) -> Mapping[K, V]:
        """Return the empty map."""
        return MappingProxyType({})

    def canonical(self, rows: Mapping[K, V]) -> Mapping[K, V]:
        """Return the element that `rows` stands for."""
        bottom = self.values.bottom()
        return MappingProxyType({key: value for key, value in rows.items() if value != bottom})

    def join(self, a: Mapping[K, V], b: Mapping[K, V], /) -> Mapping[K, V]:
        """Join key by key."""
        joined = dict(a)
        for key, value in b.items():
            joined[key] = self.values.join(joined[key], value) if key in joined else value
        return MappingProxyType(joined)

    def leq(self, a: Mapping[K, V], b: Mapping[K, V], /) -> bool:
        """Compare key by key."""
        bottom = self.values.bottom()
        return all(self.values.leq(value, b.get(key, bottom)) for key, value in a.items())

    def delta(self, current: Mapping[K, V], arriving: Mapping[K, V]) -> Mapping[K, V]:
        """Return the rows of the join that are strictly above `current`: what has to be forwarded."""
        bottom = self.values.bottom()
        grown: dict[K, V] = {}
        for key, value in arriving.items():
            joined, grew = self.values.merge(current.get(key, bottom), value)
            if grew:
                grown[key] = joined
        return MappingProxyType(grown)
