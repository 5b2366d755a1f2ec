"""The algebraic structures that everything else is an instance of.

A structure is a small object that knows how to combine plain immutable elements: `Max().join(3, 5)`.
Keeping structure and element apart lets composites (`Pair(Max(), GrowSet())`) have a bottom, and lets a
lattice table store plain columns. `==` on elements is the equality that the laws speak of.

The laws are stated here and checked by `everview.testing`.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

T = TypeVar("T")
A_contra = TypeVar("A_contra", contravariant=True)
B_contra = TypeVar("B_contra", contravariant=True)
C_co = TypeVar("C_co", covariant=True)


class Lattice(Protocol[T]):
    """A join-semilattice with a least element.

    - associative: (a ⊔ b) ⊔ c = a ⊔ (b ⊔ c)
    - commutative: a ⊔ b = b ⊔ a
    - idempotent: a ⊔ a = a
    - bottom: ⊥ ⊔ a = a
    - order: a ≤ b exactly when a ⊔ b = b

    Intuitively, an element is what a replica knows; joining two replicas forgets nothing, and it does
    not matter how often or in which order they are joined.
    """

    def bottom(self) -> T:
        """Return ⊥, what is known at the start."""
        ...

    def join(self, a: T, b: T, /) -> T:
        """Return a ⊔ b, the least element that is above both."""
        ...

    def leq(self, a: T, b: T, /) -> bool:
        """Say whether a ≤ b, that is whether b knows all that a knows."""
        return self.join(a, b) == b

    def merge(self, current: T, arriving: T, /) -> tuple[T, bool]:
        """Return the join, and whether it is strictly above `current`.

        The answer drives propagation: what did not grow is not forwarded, so replicas do not echo.
        """
        if self.leq(arriving, current):
            return current, False
        return self.join(current, arriving), True


class Semiring(Protocol[T]):
    """A commutative semiring.

    - (+, 0) and (·, 1) are commutative monoids
    - annihilation: 0 · a = 0
    - distribution: a · (b + c) = a · b + a · c

    Intuitively, + is an alternative and · is a combination (Streams §4).
    """

    def zero(self) -> T:
        """Return 0, the unit of +."""
        ...

    def one(self) -> T:
        """Return 1, the unit of ·."""
        ...

    def plus(self, a: T, b: T, /) -> T:
        """Return a + b."""
        ...

    def times(self, a: T, b: T, /) -> T:
        """Return a · b."""
        ...


class Group(Protocol[T]):
    """An abelian group.

    - associative: (a + b) + c = a + (b + c)
    - commutative: a + b = b + a
    - identity: 0 + a = a
    - inverse: a + (−a) = 0

    Intuitively, every change can be undone, and the order of changes does not matter (Rings §2.2).
    """

    def zero(self) -> T:
        """Return 0, the change that changes nothing."""
        ...

    def plus(self, a: T, b: T, /) -> T:
        """Return a + b."""
        ...

    def negate(self, a: T, /) -> T:
        """Return −a, which undoes a."""
        ...


class Ring(Semiring[T], Group[T], Protocol[T]):
    """A commutative ring: an abelian group under +, and a semiring with ·.

    Intuitively, + applies a change and · joins two relations, so that the rewrites of relational algebra
    are ring axioms (Rings §4).
    """


class Linear(Protocol[A_contra, C_co]):
    """A linear map between groups: f(a + b) = f(a) + f(b).

    Intuitively, f of a change is the change of f: nothing needs to be remembered to maintain it.
    """

    def __call__(self, a: A_contra, /) -> C_co:
        """Return f(a)."""
        ...


class Bilinear(Protocol[A_contra, B_contra, C_co]):
    """A map that is linear in each argument: f(a + a′, b) = f(a, b) + f(a′, b), and likewise in b.

    Intuitively, a change on one side meets the whole of the other: the change of f(a, b) is
    f(Δa, b) + f(a + Δa, Δb).
    """

    def __call__(self, a: A_contra, b: B_contra, /) -> C_co:
        """Return f(a, b)."""
        ...
