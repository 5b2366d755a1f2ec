"""Absorption: the minimal sets of a family, with sets as bit masks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import comb


def minimal(masks: Iterable[int]) -> list[int]:
    """Return the masks that no other mask is a proper subset of, each once.

    Candidates are taken by size, so that whatever absorbs one is kept already. To look for a kept subset
    of k bits there are two ways: name all the k-subsets and look each up, or go through the kept masks of
    k bits. The first is far cheaper for short monomials among many, the second for long ones among few;
    the counts say which. `python -m benchmarks provenance` measures it.
    """
    by_size: dict[int, set[int]] = {}
    for mask in masks:
        by_size.setdefault(mask.bit_count(), set()).add(mask)
    kept: dict[int, set[int]] = {}
    for size in sorted(by_size):
        survivors = (
            {mask for mask in by_size[size] if not _absorbed(mask, size, kept)} if kept else by_size[size]
        )
        if survivors:
            kept[size] = survivors
    return [mask for level in kept.values() for mask in level]


def _absorbed(mask: int, size: int, kept: dict[int, set[int]]) -> bool:
    members: list[int] | None = None
    for k, level in kept.items():
        if len(level) <= comb(size, k):
            for other in level:
                if other & mask == other:
                    return True
            continue
        if members is None:
            members = bits(mask)
        if _has_subset(mask, members, k, level):
            return True
    return False


def _has_subset(mask: int, members: list[int], k: int, level: set[int]) -> bool:
    """Say whether `level` holds a subset of `mask` with k bits."""
    removed = len(members) - k
    if removed == 1:
        return any(mask ^ bit in level for bit in members)
    if removed == 2:
        for position, bit in enumerate(members):
            without = mask ^ bit
            for other in members[position + 1 :]:
                if without ^ other in level:
                    return True
        return False
    if removed < k:
        return any(mask ^ sum(out) in level for out in combinations(members, removed))
    return any(sum(subset) in level for subset in combinations(members, k))


def bits(mask: int) -> list[int]:
    """Return the single-bit masks that make up `mask`, lowest first."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest)
        mask ^= lowest
    return found
