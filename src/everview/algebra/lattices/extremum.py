"""Max and Min: the lattices of an ordered type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from everview.algebra.laws import Lattice
from everview.errors import DataError

V = TypeVar("V")


def precedes(a: Any, b: Any) -> bool:
    """Say whether a < b in a total order; values that have none between them are refused.

    int and bool are told apart, and so are int and float: an order over mixed types would differ from the
    one that SQL has over a typed column. NaN is refused, because it is neither below nor above anything.
    """
    if type(a) is not type(b):
        raise DataError(
            f"cannot order {type(a).__name__} {a!r} and {type(b).__name__} {b!r}: mixed types",
            value=b,
            expected=type(a).__name__,
        )
    for value in (a, b):
        if value != value:  # noqa: PLR0124 - only NaN differs from itself, whatever its type
            raise DataError("NaN has no place in an order", value=value)
    try:
        return bool(a < b)
    except TypeError:
        raise DataError(f"{type(a).__name__} has no order: {a!r}, {b!r}", value=b) from None


@dataclass(frozen=True, slots=True)
class Max(Lattice[V | None], Generic[V]):
    """The greater of two values; None, which is below every value, is ⊥."""

    def bottom(self) -> V | None:
        """Return None: no value yet."""
        return None

    def join(self, a: V | None, b: V | None, /) -> V | None:
        """Return the greater one."""
        if a is None or b is None:
            return b if a is None else a
        return b if precedes(a, b) else a

    def leq(self, a: V | None, b: V | None, /) -> bool:
        """Compare by value."""
        return a is None or (b is not None and not precedes(b, a))


@dataclass(frozen=True, slots=True)
class Min(Lattice[V | None], Generic[V]):
    """The lesser of two values; None, which stands above every value, is ⊥. Growing means getting less."""

    def bottom(self) -> V | None:
        """Return None: no value yet."""
        return None

    def join(self, a: V | None, b: V | None, /) -> V | None:
        """Return the lesser one."""
        if a is None or b is None:
            return b if a is None else a
        return b if precedes(b, a) else a

    def leq(self, a: V | None, b: V | None, /) -> bool:
        """Compare by value, downwards."""
        return a is None or (b is not None and not precedes(a, b))
