"""Provenance: from which base tuples a view's tuple was made (Streams §5, §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from everview.algebra import antichain
from everview.algebra.causal_length import CausalLengths, is_present
from everview.algebra.ids import Id, checked_id, id_order, show_id
from everview.algebra.laws import Lattice, Semiring
from everview.errors import DataError, LimitError

Monomial = frozenset[Id]

MONOMIAL_LIMIT = 100_000
"""How many monomials an element may have: antichains over n ids can reach C(n, n/2) of them."""


class Provenance:
    """An element of the p-semiring in canonical form: an antichain of sets of ids.

    Each monomial is a set of base tuples that suffices for the view's tuple to be there; the element is
    their sum. Besides the laws of a commutative semiring, + and · are idempotent and absorb:
    p + p·q = p. So monomials that contain another are dropped, and two elements are equal exactly when
    they say the same. 0 is the tuple that cannot be there, 1 the one that always is.
    """

    __slots__ = ("_hash", "_monomials")
    ZERO: ClassVar[Provenance]
    ONE: ClassVar[Provenance]

    def __init__(self, monomials: Iterable[Iterable[Id]] = (), *, limit: int = MONOMIAL_LIMIT) -> None:
        given = {frozenset(map(checked_id, _no_text(monomial))) for monomial in monomials}
        self._monomials = _minimal(given, limit)
        self._hash: int | None = None

    @classmethod
    def of(cls, *ids: Id) -> Provenance:
        """Return the single monomial of these ids: one base tuple, or several joined."""
        return cls([ids])

    @classmethod
    def parse(cls, text: str) -> Provenance:
        """Read an expression such as `t1·t3 + t2` or `(t1 + t2)*(t2 + t3)`, reduced."""
        from everview.algebra.provenance_text import parse  # noqa: PLC0415 - the parser builds elements

        return parse(text)

    @classmethod
    def _canonical(cls, monomials: frozenset[Monomial]) -> Provenance:
        made = cls()
        made._monomials = monomials
        return made

    @property
    def monomials(self) -> frozenset[Monomial]:
        """The minimal sets of ids, each of which suffices."""
        return self._monomials

    @property
    def ids(self) -> frozenset[Id]:
        """All ids that matter: those whose presence can make a difference."""
        return frozenset().union(*self._monomials)

    def plus(self, other: Provenance, *, limit: int = MONOMIAL_LIMIT) -> Provenance:
        """Return the sum: there by the one or by the other (union, projection)."""
        if self._monomials >= other._monomials:
            return self
        if other._monomials >= self._monomials:
            return other
        return Provenance._canonical(_minimal(self._monomials | other._monomials, limit))

    def times(self, other: Provenance, *, limit: int = MONOMIAL_LIMIT) -> Provenance:
        """Return the product: there by the one and by the other (join)."""
        coding = _Coding(self.ids | other.ids)
        left = [coding.encode(monomial) for monomial in self._monomials]
        right = [coding.encode(monomial) for monomial in other._monomials]
        masks = {a | b for a in left for b in right}
        return Provenance._canonical(coding.decode(antichain.minimal(masks), limit))

    def __add__(self, other: object) -> Provenance:
        return self.plus(other) if isinstance(other, Provenance) else NotImplemented

    def __mul__(self, other: object) -> Provenance:
        return self.times(other) if isinstance(other, Provenance) else NotImplemented

    def __le__(self, other: Provenance) -> bool:
        """Say whether p + q = q: whenever this one is there, so is the other."""
        return all(any(theirs <= mine for theirs in other._monomials) for mine in self._monomials)

    def present(self, lengths: CausalLengths | Mapping[Id, int], *, strict: bool = False) -> bool:
        """Say whether the tuple is there: some monomial has only ids of odd causal length.

        This is `in?` of Streams §7. An id without a length counts as never inserted; `strict` makes it an
        error instead, for callers who hold all lengths.
        """
        if strict:
            unknown = sorted((id_ for id_ in self.ids if id_ not in lengths), key=id_order)
            if unknown:
                raise DataError(f"no causal length is known for {', '.join(map(show_id, unknown))}")
        known = lengths if isinstance(lengths, CausalLengths) else CausalLengths(lengths)
        return any(all(is_present(known[id_]) for id_ in monomial) for monomial in self._monomials)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Provenance) and self._monomials == other._monomials

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._monomials)
        return self._hash

    def __len__(self) -> int:
        return len(self._monomials)

    def __bool__(self) -> bool:
        """0 is false, everything else is true."""
        return bool(self._monomials)

    def __str__(self) -> str:
        if not self._monomials:
            return "0"
        ordered = sorted(
            (sorted(monomial, key=id_order) for monomial in self._monomials),
            key=lambda ids: [id_order(id_) for id_ in ids],
        )
        return " + ".join("·".join(map(show_id, ids)) or "1" for ids in ordered)

    def __repr__(self) -> str:
        return f"Provenance({str(self)!r})"


def _no_text(monomial: Iterable[Id]) -> Iterable[Id]:
    if isinstance(monomial, (str, bytes)):  # a str iterates over its letters, which nobody means
        raise DataError(f"a monomial is a set of ids, not {monomial!r}: write [{monomial!r}]", value=monomial)
    return monomial


class _Coding:
    """Ids as bits, so that union and subset are single operations on int."""

    def __init__(self, ids: Iterable[Id]) -> None:
        self._ids = list(ids)
        self._bit = {id_: 1 << position for position, id_ in enumerate(self._ids)}

    def encode(self, monomial: Monomial) -> int:
        mask = 0
        for id_ in monomial:
            mask |= self._bit[id_]
        return mask

    def decode(self, masks: list[int], limit: int) -> frozenset[Monomial]:
        if len(masks) > limit:
            raise LimitError(
                f"a provenance of {len(masks)} monomials is over the limit of {limit}: host the view's base "
                "relations at this site, where no annotation is needed, or raise the limit",
                limit=limit,
            )
        id_of = {bit: id_ for id_, bit in self._bit.items()}
        return frozenset(frozenset(id_of[bit] for bit in antichain.bits(mask)) for mask in masks)


def _minimal(monomials: Iterable[Monomial], limit: int) -> frozenset[Monomial]:
    family = list(monomials)
    coding = _Coding(frozenset().union(*family))
    return coding.decode(antichain.minimal(map(coding.encode, family)), limit)


Provenance.ZERO = Provenance()
Provenance.ONE = Provenance([[]])


@dataclass(frozen=True, slots=True)
class PSemiring(Semiring[Provenance], Lattice[Provenance]):
    """The p-semiring, which is a distributive lattice too: + is the join and · the meet."""

    limit: int = MONOMIAL_LIMIT

    def zero(self) -> Provenance:
        """Return 0: never there."""
        return Provenance.ZERO

    def one(self) -> Provenance:
        """Return 1: always there."""
        return Provenance.ONE

    def plus(self, a: Provenance, b: Provenance, /) -> Provenance:
        """Return a + b."""
        return a.plus(b, limit=self.limit)

    def times(self, a: Provenance, b: Provenance, /) -> Provenance:
        """Return a · b."""
        return a.times(b, limit=self.limit)

    def bottom(self) -> Provenance:
        """Return 0."""
        return Provenance.ZERO

    def join(self, a: Provenance, b: Provenance, /) -> Provenance:
        """Return a + b."""
        return a.plus(b, limit=self.limit)

    def leq(self, a: Provenance, b: Provenance, /) -> bool:
        """Return a ≤ b."""
        return a <= b
