"""Antichains of monomials, which are sets of ids, as bits of integers."""

from __future__ import annotations

from collections.abc import Iterable

from everview.located.facts import Fact

__all__ = ["absorb", "thin"]


def absorb(kept: list[int], mask: int) -> list[int] | None:
    """Add a monomial to an antichain; return those that it absorbs, None if it is absorbed itself."""
    for other in kept:
        if other & mask == other:
            return None
    superfluous = [other for other in kept if mask & other == mask]
    for other in superfluous:
        kept.remove(other)
    kept.append(mask)
    return superfluous


def thin(monomials: dict[Fact, list[int]], facts: Iterable[Fact], gone: int) -> None:
    """Take those monomials out that have any of these bits."""
    for fact in facts:
        kept = [mask for mask in monomials.get(fact, ()) if not mask & gone]
        if kept:
            monomials[fact] = kept
        else:
            monomials.pop(fact, None)
