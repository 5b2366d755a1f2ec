"""The relational operators on Z-sets: the reference semantics of the circuits.

| operator | on a change |
|---|---|
| map_rows, filter_rows, union_all | linear: applied to the change alone |
| join_on | bilinear: Δa ⋈ b + (a + Δa) ⋈ Δb |
| distinct, union, difference, difference_all, group_aggregate | neither: the touched rows or groups again |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from everview.algebra.indexed_zset import IndexedZSet
from everview.algebra.zset import ZSet

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Hashable)
S = TypeVar("S", bound=Hashable)
T = TypeVar("T", bound=Hashable)


def map_rows(zset: ZSet[R], function: Callable[[R], S]) -> ZSet[S]:
    """Apply `function` to every row; rows that become equal add their weights. Linear."""
    return ZSet((function(row), weight) for row, weight in zset.items())


def filter_rows(zset: ZSet[R], predicate: Callable[[R], bool]) -> ZSet[R]:
    """Keep the rows that satisfy `predicate`. Linear."""
    return ZSet((row, weight) for row, weight in zset.items() if predicate(row))


def join_on(
    left: ZSet[R],
    right: ZSet[S],
    left_key: Callable[[R], K],
    right_key: Callable[[S], K],
    combine: Callable[[R, S], T],
) -> ZSet[T]:
    """Combine the pairs of rows with equal keys; weights multiply. Bilinear."""
    arranged = IndexedZSet.index(right, right_key)
    return ZSet(
        (combine(row, other), weight * other_weight)
        for row, weight in left.items()
        for other, other_weight in arranged[left_key(row)].items()
    )


def union_all(left: ZSet[R], right: ZSet[R]) -> ZSet[R]:
    """Add the weights: UNION ALL. Linear in the pair."""
    return left + right


def distinct(zset: ZSet[R]) -> ZSet[R]:
    """Give every row of positive weight the weight 1, and drop the rest: DISTINCT."""
    return ZSet((row, 1) for row, weight in zset.items() if weight > 0)


def union(left: ZSet[R], right: ZSet[R]) -> ZSet[R]:
    """Keep each row that is in either, once: UNION."""
    return distinct(distinct(left) + distinct(right))


def difference(left: ZSet[R], right: ZSet[R]) -> ZSet[R]:
    """Keep each row that is in the left and not in the right, once: EXCEPT."""
    return distinct(distinct(left) - distinct(right))


def difference_all(left: ZSet[R], right: ZSet[R]) -> ZSet[R]:
    """Take the right multiplicities off the left ones, not below zero: EXCEPT ALL."""
    return filter_rows(left - right, lambda row: left[row] > right[row])


def group_aggregate(zset: ZSet[R], key: Callable[[R], K], aggregate: Callable[[K, ZSet[R]], T]) -> ZSet[T]:
    """Make one row of each group that has a row of positive weight: GROUP BY.

    `aggregate` is given the group's key and its rows with their multiplicities.
    """
    groups = IndexedZSet.index(filter_rows(zset, lambda row: zset[row] > 0), key)
    return ZSet((aggregate(of, groups[of]), 1) for of in groups)
