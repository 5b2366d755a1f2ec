"""The laws of lattices, semirings, groups, rings, and of linear and bilinear maps."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq
from typing import Any

from everview.algebra.laws import Group, Lattice, Ring, Semiring
from everview.testing.laws import Law, check_laws

Binary = Callable[[Any, Any], Any]
Equality = Callable[[Any, Any], bool]


def lattice_laws(lattice: Lattice[Any], equal: Equality = eq) -> list[Law]:
    """Return the laws of a join-semilattice with bottom, its order, and its merge."""
    join, leq, merge = lattice.join, lattice.leq, lattice.merge

    def merges(a: Any, b: Any) -> bool:
        value, grew = merge(a, b)
        return equal(value, join(a, b)) and grew is not leq(b, a)

    return [
        Law("idempotent", "a ⊔ a = a", 1, lambda a: equal(join(a, a), a)),
        Law("bottom", "⊥ ⊔ a = a", 1, lambda a: equal(join(lattice.bottom(), a), a)),
        Law("reflexive", "a ≤ a", 1, lambda a: leq(a, a) is True),
        Law("commutative", "a ⊔ b = b ⊔ a", 2, lambda a, b: equal(join(a, b), join(b, a))),
        Law("order", "a ≤ b exactly when a ⊔ b = b", 2, lambda a, b: leq(a, b) is equal(join(a, b), b)),
        Law("upper bound", "a ≤ a ⊔ b", 2, lambda a, b: leq(a, join(a, b))),
        Law("merge", "merge gives a ⊔ b, and says whether b told a anything", 2, merges),
        Law(
            "associative",
            "(a ⊔ b) ⊔ c = a ⊔ (b ⊔ c)",
            3,
            lambda a, b, c: equal(join(join(a, b), c), join(a, join(b, c))),
        ),
    ]


def _monoid_laws(sign: str, unit: str, combine: Binary, neutral: Callable[[], Any]) -> list[Law]:
    return [
        Law(f"identity of {sign}", f"{unit} {sign} a = a", 1, lambda a: combine(neutral(), a) == a),
        Law(
            f"commutative {sign}", f"a {sign} b = b {sign} a", 2, lambda a, b: combine(a, b) == combine(b, a)
        ),
        Law(
            f"associative {sign}",
            f"(a {sign} b) {sign} c = a {sign} (b {sign} c)",
            3,
            lambda a, b, c: combine(combine(a, b), c) == combine(a, combine(b, c)),
        ),
    ]


def semiring_laws(semiring: Semiring[Any]) -> list[Law]:
    """Return the laws of a commutative semiring."""
    plus, times = semiring.plus, semiring.times
    return [
        *_monoid_laws("+", "0", plus, semiring.zero),
        *_monoid_laws("·", "1", times, semiring.one),
        Law("annihilation", "0 · a = 0", 1, lambda a: times(semiring.zero(), a) == semiring.zero()),
        Law(
            "distribution",
            "a · (b + c) = a · b + a · c",
            3,
            lambda a, b, c: times(a, plus(b, c)) == plus(times(a, b), times(a, c)),
        ),
    ]


def group_laws(group: Group[Any]) -> list[Law]:
    """Return the laws of an abelian group."""
    return [
        *_monoid_laws("+", "0", group.plus, group.zero),
        Law("inverse", "a + (−a) = 0", 1, lambda a: group.plus(a, group.negate(a)) == group.zero()),
    ]


def check_lattice(
    lattice: Lattice[Any], samples: Any, *, equal: Equality = eq, max_examples: int = 300
) -> None:
    """Check the laws of a join-semilattice, its order, and that `merge` tells growth truly."""
    check_laws(lattice, lattice_laws(lattice, equal), samples, max_examples=max_examples)


def check_semiring(semiring: Semiring[Any], samples: Any, *, max_examples: int = 300) -> None:
    """Check the laws of a commutative semiring."""
    check_laws(semiring, semiring_laws(semiring), samples, max_examples=max_examples)


def check_group(group: Group[Any], samples: Any, *, max_examples: int = 300) -> None:
    """Check the laws of an abelian group."""
    check_laws(group, group_laws(group), samples, max_examples=max_examples)


def check_ring(ring: Ring[Any], samples: Any, *, max_examples: int = 300) -> None:
    """Check the laws of a commutative ring."""
    check_group(ring, samples, max_examples=max_examples)
    check_semiring(ring, samples, max_examples=max_examples)


def check_linear(
    function: Callable[[Any], Any],
    samples: Any,
    *,
    domain: Group[Any],
    codomain: Group[Any],
    max_examples: int = 300,
) -> None:
    """Check f(a + b) = f(a) + f(b), and f(0) = 0."""
    laws = [
        Law("zero", "f(0) = 0", 1, lambda _: function(domain.zero()) == codomain.zero()),
        Law(
            "linear",
            "f(a + b) = f(a) + f(b)",
            2,
            lambda a, b: function(domain.plus(a, b)) == codomain.plus(function(a), function(b)),
        ),
    ]
    check_laws(function, laws, samples, max_examples=max_examples)


def check_bilinear(
    function: Callable[[Any, Any], Any],
    samples: Any,
    *,
    left: Group[Any],
    right: Group[Any],
    codomain: Group[Any],
    max_examples: int = 300,
) -> None:
    """Check linearity in each argument; `samples` are pairs (left element, right element)."""
    plus = codomain.plus

    def left_linear(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
        (x, y), (z, _) = a, b
        return bool(function(left.plus(x, z), y) == plus(function(x, y), function(z, y)))

    def right_linear(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
        (x, y), (_, z) = a, b
        return bool(function(x, right.plus(y, z)) == plus(function(x, y), function(x, z)))

    laws = [
        Law("left linear", "f(a₁ + b₁, a₂) = f(a₁, a₂) + f(b₁, a₂)", 2, left_linear),
        Law("right linear", "f(a₁, a₂ + b₂) = f(a₁, a₂) + f(a₁, b₂)", 2, right_linear),
    ]
    check_laws(function, laws, samples, max_examples=max_examples)
