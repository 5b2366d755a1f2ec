"""Aggregates: what a computational CRDT computes, apart from how it is replicated."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

C = TypeVar("C")
V_co = TypeVar("V_co", covariant=True)


class Aggregate(Protocol[C, V_co]):
    """A commutative monoid of contributions, and the value that a contribution stands for.

    - associative: (a ∘ b) ∘ c = a ∘ (b ∘ c)
    - commutative: a ∘ b = b ∘ a
    - identity: zero ∘ a = a

    It need not be idempotent, and most are not: replication makes sure that each contribution counts
    once. Contributions are immutable.
    """

    def zero(self) -> C:
        """Return the contribution of nobody."""
        ...

    def combine(self, a: C, b: C, /) -> C:
        """Return both contributions as one."""
        ...

    def lift(self, *observation: Any, **options: Any) -> C:
        """Check one observation and return what it contributes; what it takes is each aggregate's own."""
        ...

    def value(self, contribution: C, /) -> V_co:
        """Return what a reader is shown."""
        ...
