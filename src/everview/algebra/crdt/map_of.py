"""Map: key → CRDT, merged key by key, to any depth."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.replica import Replica
from everview.errors import DataError

C = TypeVar("C")
V = TypeVar("V")

ByKey = Mapping[Hashable, C]


@dataclass(frozen=True, slots=True)
class MapOf(Aggregate[ByKey[C], dict[Hashable, V]], Generic[C, V]):
    """Maps of contributions to one inner aggregate, combined key by key; a missing key is zero."""

    inner: Aggregate[C, V]

    def zero(self) -> ByKey[C]:
        """Return the empty map."""
        return MappingProxyType({})

    def combine(self, a: ByKey[C], b: ByKey[C], /) -> ByKey[C]:
        """Combine key by key."""
        small, large = (a, b) if len(a) < len(b) else (b, a)
        merged = dict(large)
        for key, contribution in small.items():
            merged[key] = self.inner.combine(merged[key], contribution) if key in merged else contribution
        return MappingProxyType(merged)

    def lift(self, key: Hashable, *observation: Any, **options: Any) -> ByKey[C]:
        """Return the map of one observation."""
        return MappingProxyType({checks.hashable(key, "a key"): self.inner.lift(*observation, **options)})

    def value(self, contribution: ByKey[C], /) -> dict[Hashable, V]:
        """Return key → the inner value."""
        return {key: self.inner.value(inner) for key, inner in contribution.items()}


class Map(Replica[ByKey[Any], dict[Hashable, Any]]):
    """A map of CRDTs; `inner` is a replica of the kind that each key holds: `Map("s0", Counter("s0"))`."""

    aggregate: MapOf[Any, Any]

    def __init__(self, source: str, inner: Replica[Any, Any]) -> None:
        if not isinstance(inner, Replica):
            raise DataError(f"inner must be a CRDT, such as Counter({source!r}), not {inner!r}", value=inner)
        super().__init__(MapOf(inner.aggregate), source)

    def update(self, key: Hashable, *observation: Any, **options: Any) -> None:
        """Contribute to the CRDT of `key` what its own verb would take."""
        self.contribute(self.aggregate.lift(key, *observation, **options))
