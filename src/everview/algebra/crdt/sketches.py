"""DistinctCount and Quantiles: approximate aggregates of bounded size, on Apache DataSketches.

The bytes are those of Spark's built-in sketch functions, which can merge them. Merging sketches is
neither idempotent nor exact, so each source's sketch is kept apart under its count and all are merged
when read: replicas agree within the error bound, not bytewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from everview.algebra import checks
from everview.algebra.crdt.aggregate import Aggregate
from everview.algebra.crdt.replica import Replica
from everview.errors import DataError, MissingDependencyError

Item = int | float | str


def _datasketches() -> Any:
    try:
        import datasketches  # noqa: PLC0415 - an optional part, which brings NumPy
    except ImportError:
        raise MissingDependencyError(
            "approximate aggregates need DataSketches: pip install 'everview[sketches]'"
        ) from None
    return datasketches


@dataclass(frozen=True, slots=True)
class Hll(Aggregate[bytes, float]):
    """HyperLogLog sketches under union; empty bytes are the sketch of nothing."""

    lg_k: int

    def __post_init__(self) -> None:
        if not 4 <= checks.natural(self.lg_k, "lg_k") <= 21:
            raise DataError(f"lg_k must be from 4 to 21, not {self.lg_k}", value=self.lg_k)

    def zero(self) -> bytes:
        """Return no bytes."""
        return b""

    def combine(self, a: bytes, b: bytes, /) -> bytes:
        """Return the union of two sketches."""
        if not a or not b:
            return a or b
        library = _datasketches()
        union = library.hll_union(self.lg_k)
        union.update(_read(library.hll_sketch, a))
        union.update(_read(library.hll_sketch, b))
        return bytes(union.get_result(library.HLL_8).serialize_compact())

    def lift(self, *items: Item) -> bytes:
        """Return the sketch of some items."""
        library = _datasketches()
        sketch = library.hll_sketch(self.lg_k, library.HLL_8)
        for item in items:
            sketch.update(_item(item))
        return bytes(sketch.serialize_compact())

    def value(self, contribution: bytes, /) -> float:
        """Return the estimated number of distinct items."""
        if not contribution:
            return 0.0
        return float(_read(_datasketches().hll_sketch, contribution).get_estimate())


class DistinctCount(Replica[bytes, float]):
    """About how many different items were seen: 1.04/√(2^lg_k) standard error, 1.6% by default."""

    aggregate: Hll

    def __init__(self, source: str, *, lg_k: int = 12) -> None:
        super().__init__(Hll(lg_k), source)

    def add(self, *items: Item) -> None:
        """Take items into account; many at once is much faster than one by one."""
        self.contribute(self.aggregate.lift(*items))


@dataclass(frozen=True, slots=True)
class Kll(Aggregate[bytes, tuple[float, ...] | None]):
    """KLL sketches of doubles under merge, read at the given ranks; empty bytes are the sketch of nothing."""

    k: int
    ranks: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 8 <= checks.natural(self.k, "k") <= 65535:
            raise DataError(f"k must be from 8 to 65535, not {self.k}", value=self.k)
        for rank in self.ranks:
            if type(rank) not in (int, float) or not 0 <= rank <= 1:
                raise DataError(f"a rank lies from 0 to 1, not at {rank!r}", value=rank)

    def zero(self) -> bytes:
        """Return no bytes."""
        return b""

    def combine(self, a: bytes, b: bytes, /) -> bytes:
        """Return the merge of two sketches."""
        if not a or not b:
            return a or b
        library = _datasketches()
        merged = _read(library.kll_doubles_sketch, a)
        merged.merge(_read(library.kll_doubles_sketch, b))
        return bytes(merged.serialize())

    def lift(self, *items: float) -> bytes:
        """Return the sketch of some numbers; NaN has no rank and is refused."""
        sketch = _datasketches().kll_doubles_sketch(self.k)
        for item in items:
            if isinstance(_item(item), str):
                raise DataError(
                    f"expected a number that has a rank, not {item!r}", value=item, expected="float"
                )
            sketch.update(float(item))
        return bytes(sketch.serialize())

    def value(self, contribution: bytes, /) -> tuple[float, ...] | None:
        """Return the numbers at the ranks, None of nothing."""
        if not contribution:
            return None
        sketch = _read(_datasketches().kll_doubles_sketch, contribution)
        return None if sketch.is_empty() else tuple(_at_rank(sketch, rank) for rank in self.ranks)


class Quantiles(Replica[bytes, tuple[float, ...] | None]):
    """The numbers at given ranks, the median by default, with about 1.3% error in rank.

    An exact median has no state of bounded size that can be merged; this one is approximate.
    """

    aggregate: Kll

    def __init__(self, source: str, *, ranks: Iterable[float] = (0.5,), k: int = 200) -> None:
        super().__init__(Kll(k, tuple(ranks)), source)

    def add(self, *items: float) -> None:
        """Take numbers into account; many at once is much faster than one by one."""
        self.contribute(self.aggregate.lift(*items))


def _at_rank(sketch: Any, rank: float) -> float:
    """Return the number at a rank; the least and the greatest are known exactly."""
    if rank == 0:
        return float(sketch.get_min_value())
    return float(sketch.get_max_value() if rank == 1 else sketch.get_quantile(rank))


def _read(kind: Any, contribution: bytes) -> Any:
    try:
        return kind.deserialize(contribution)
    except (IndexError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(
            f"these {len(contribution)} bytes are not a sketch: {error}", value=contribution
        ) from None


def _item(item: Any) -> Item:
    """Return an item that every machine hashes alike; an int beyond 64 bits or a NaN is none."""
    match item:
        case bool():
            pass
        case str():
            return item
        case int() if -(2**63) <= item < 2**63:
            return item
        case float() if not math.isnan(item):
            return item
    raise DataError(
        f"expected a 64-bit int, a float or a str, not {type(item).__name__} {item!r}", value=item
    )
