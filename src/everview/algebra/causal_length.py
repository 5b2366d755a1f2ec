"""Causal lengths: how often a tuple has been inserted and deleted in turn (Streams §6)."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from dataclasses import dataclass

from everview.algebra import checks
from everview.algebra.ids import Id, checked_id
from everview.algebra.laws import Lattice


def is_present(length: int) -> bool:
    """A tuple is present when its causal length is odd: it was last inserted, not deleted."""
    return checks.natural(length, "a causal length") % 2 == 1


def inserted(length: int) -> int:
    """Return the causal length after an insertion: one more if the tuple was absent, else unchanged.

    Intuitively, insertions and deletions take turns. Two sites that insert the same absent tuple agree
    on the length, so their updates are one and the same; the longer chain has seen the shorter one.
    """
    return length if is_present(length) else length + 1


def deleted(length: int) -> int:
    """Return the causal length after a deletion: one more if the tuple was present, else unchanged."""
    return length + 1 if is_present(length) else length


class CausalLengths:
    """Id → causal length; an id that is missing has length 0, as if it had never been inserted."""

    __slots__ = ("_lengths",)

    def __init__(self, lengths: Mapping[Id, int] | None = None) -> None:
        checked = {
            checked_id(id_): checks.natural(length, f"the causal length of {id_!r}")
            for id_, length in (lengths or {}).items()
        }
        self._lengths = {id_: length for id_, length in checked.items() if length}

    def __getitem__(self, id_: Id) -> int:
        return self._lengths.get(checked_id(id_), 0)

    def __contains__(self, id_: Id) -> bool:
        return id_ in self._lengths

    def items(self) -> ItemsView[Id, int]:
        """Return the (id, length) pairs that are not 0."""
        return self._lengths.items()

    def is_present(self, id_: Id) -> bool:
        """Say whether the tuple of this id is present."""
        return is_present(self[id_])

    def insert(self, id_: Id) -> CausalLengths:
        """Return the lengths after inserting the tuple of this id (Streams, Algorithm 1)."""
        return self._set(id_, inserted(self[id_]))

    def delete(self, id_: Id) -> CausalLengths:
        """Return the lengths after deleting the tuple of this id (Streams, Algorithm 2)."""
        return self._set(id_, deleted(self[id_]))

    def _set(self, id_: Id, length: int) -> CausalLengths:
        return CausalLengths({**self._lengths, id_: length})

    def __or__(self, other: CausalLengths) -> CausalLengths:
        """Return the join: the greater length of each id."""
        lengths = dict(self._lengths)
        for id_, length in other._lengths.items():
            lengths[id_] = max(length, lengths.get(id_, 0))
        return CausalLengths(lengths)

    def __le__(self, other: CausalLengths) -> bool:
        """Say whether every length here is reached there."""
        return all(length <= other._lengths.get(id_, 0) for id_, length in self._lengths.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CausalLengths) and self._lengths == other._lengths

    def __hash__(self) -> int:
        return hash(frozenset(self._lengths.items()))

    def __repr__(self) -> str:
        return f"CausalLengths({self._lengths!r})"


@dataclass(frozen=True, slots=True)
class CausalLength(Lattice[int]):
    """The causal length of one tuple: the naturals under max."""

    def bottom(self) -> int:
        """Return 0: never inserted."""
        return 0

    def join(self, a: int, b: int, /) -> int:
        """Return the longer chain, which has seen the shorter one."""
        return max(checks.natural(a, "a causal length"), checks.natural(b, "a causal length"))

    def leq(self, a: int, b: int, /) -> bool:
        """Return a ≤ b."""
        return checks.natural(a, "a causal length") <= checks.natural(b, "a causal length")


@dataclass(frozen=True, slots=True)
class CausalLengthMap(Lattice[CausalLengths]):
    """Causal lengths of many tuples, joined id by id."""

    def bottom(self) -> CausalLengths:
        """Return the lengths of a relation that has never held a tuple."""
        return CausalLengths()

    def join(self, a: CausalLengths, b: CausalLengths, /) -> CausalLengths:
        """Return a | b."""
        return a | b

    def leq(self, a: CausalLengths, b: CausalLengths, /) -> bool:
        """Return a ≤ b."""
        return a <= b
