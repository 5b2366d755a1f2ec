"""Set: what has been seen, once each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.order import canonical_order
from everview.algebra.crdt.replica import Replica

ByKey = Mapping[Hashable, Hashable]


@dataclass(frozen=True, slots=True)
class Distinct(Aggregate[ByKey, frozenset[Hashable]]):
    """Elements under union, one for each key.

    Two elements with one key are two accounts of one thing (a message id with different texts): the
    greater in canonical order stays, whoever arrives first.
    """

    key: Callable[[Any], Hashable] | None = field(default=None, compare=False)

    def zero(self) -> ByKey:
        """Return ∅."""
        return MappingProxyType({})

    def combine(self, a: ByKey, b: ByKey, /) -> ByKey:
        """Return the union; of two elements with one key the greater."""
        merged = dict(a)
        for key, element in b.items():
            merged[key] = max(merged.get(key, element), element, key=canonical_order)
        return MappingProxyType(merged)

    def lift(self, element: Hashable) -> ByKey:
        """Return the set of one element."""
        checks.hashable(element, "an element of a set")
        key = element if self.key is None else self.key(element)
        return MappingProxyType({checks.hashable(key, "the key of an element"): element})

    def value(self, contribution: ByKey, /) -> frozenset[Hashable]:
        """Return the elements."""
        return frozenset(contribution.values())


class Set(Replica[ByKey, frozenset[Hashable]]):
    """A set that only grows; with `key`, of elements that share one only one stays."""

    aggregate: Distinct

    def __init__(self, source: str, *, key: Callable[[Any], Hashable] | None = None) -> None:
        super().__init__(Distinct(key), source)

    def add(self, element: Hashable) -> None:
        """Add one element."""
        self.contribute(self.aggregate.lift(element))
