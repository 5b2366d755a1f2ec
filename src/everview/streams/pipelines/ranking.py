"""Rankings: the n pairs (key, value) with the greatest values, of equal ones the lesser keys."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from everview.streams.pipelines.keys import key_order

Ranking = list[tuple[Any, Any]]


def greatest(pairs: Iterable[tuple[Any, Any]], n: int) -> Ranking:
    """Return the n greatest, greatest first; a value of 0 counts as absent."""
    found = [pair for pair in pairs if pair[1]]
    if len(found) > n:
        # Most are below the n-th value: only the others are compared by key.
        least = heapq.nlargest(n, map(itemgetter(1), found))[-1]
        found = [pair for pair in found if pair[1] >= least]
    return sorted(found, key=lambda pair: (-pair[1], key_order(pair[0])))[:n]


def reranked(old: Ranking, found: Mapping[Any, Any], n: int, search: Callable[[], Ranking]) -> Ranking:
    """Return a ranking as it is now; `found` are the values of its keys and of those that changed.

    Who is not among the n cannot overtake who is without changing. So all keys have to be searched only when
    one of the ranking has fallen, and not even then as long as all of them are in it.
    """
    falls = any(key not in found or found[key] < value for key, value in old)
    return search() if falls and len(old) == n else greatest(found.items(), n)


def merged(rankings: Iterable[Ranking], n: int) -> tuple[tuple[Any, Any], ...]:
    """Return the n greatest of several partitions' rankings; a key that is in two has the sum of both."""
    totals: dict[Any, Any] = {}
    for ranking in rankings:
        for key, value in ranking:
            totals[key] = totals[key] + value if key in totals else value
    return tuple(greatest(totals.items(), n))
