"""VersionVector: how far each origin's commits are known."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from dataclasses import dataclass
from typing import ClassVar

from everview.algebra import checks
from everview.algebra.laws import Lattice


class VersionVector:
    """Origin → commit: every commit of that origin up to this number is known. Missing means 0."""

    __slots__ = ("_commits",)
    EMPTY: ClassVar[VersionVector]

    def __init__(self, commits: Mapping[str, int] | None = None) -> None:
        checked = {
            checks.name(origin, "an origin"): checks.natural(commit, f"the commit of {origin!r}")
            for origin, commit in (commits or {}).items()
        }
        self._commits = {origin: commit for origin, commit in checked.items() if commit}

    def __getitem__(self, origin: str) -> int:
        return self._commits.get(origin, 0)

    def items(self) -> ItemsView[str, int]:
        """Return the (origin, commit) pairs that are not 0."""
        return self._commits.items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionVector) and self._commits == other._commits

    def __hash__(self) -> int:
        return hash(frozenset(self._commits.items()))

    def __or__(self, other: VersionVector) -> VersionVector:
        """Return the join: the greater commit of each origin."""
        return VersionVector(
            {origin: max(self[origin], other[origin]) for origin in self._commits.keys() | other._commits}
        )

    def __le__(self, other: VersionVector) -> bool:
        """Say whether all commits known here are known there."""
        return all(commit <= other[origin] for origin, commit in self._commits.items())

    def covers(self, origin: str, commit: int) -> bool:
        """Say whether this dot, a commit of an origin, is known."""
        return commit <= self[origin]

    def advance(self, origin: str) -> VersionVector:
        """Return the vector after the next commit of `origin`."""
        return VersionVector({**self._commits, origin: self[origin] + 1})

    def __repr__(self) -> str:
        inner = ", ".join(f"{origin}: {commit}" for origin, commit in sorted(self._commits.items()))
        return f"VersionVector({{{inner}}})"


VersionVector.EMPTY = VersionVector()


@dataclass(frozen=True, slots=True)
class Vectors(Lattice[VersionVector]):
    """Version vectors, joined by the greatest commit of each origin."""

    def bottom(self) -> VersionVector:
        """Return the vector that knows nothing."""
        return VersionVector.EMPTY

    def join(self, a: VersionVector, b: VersionVector, /) -> VersionVector:
        """Return a | b."""
        return a | b

    def leq(self, a: VersionVector, b: VersionVector, /) -> bool:
        """Return a ≤ b."""
        return a <= b
