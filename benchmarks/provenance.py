"""Products of sums, absorption included, against absorption pair by pair."""

from __future__ import annotations

import random

from benchmarks.harness import Result, interleaved
from everview.algebra.ids import Id
from everview.algebra.provenance import Monomial, Provenance


def run(*, quick: bool) -> Result:
    """Measure a product of two sums of 300 monomials of 3 ids out of 60 (quick: 60 monomials)."""
    monomials, naive_monomials, repeats = (60, 20, 5) if quick else (300, 60, 5)
    left, right = _sums(monomials)
    small_left, small_right = _sums(naive_monomials)
    taken = interleaved(
        {
            "product": lambda: left * right,
            "small": lambda: small_left * small_right,
            "small, pair by pair": lambda: _naive(small_left, small_right),
        },
        repeats=repeats,
    )
    figures = {
        "product_seconds": taken["product"],
        "result_monomials": len(left * right),
        "pairwise_speedup": taken["small, pair by pair"] / taken["small"],
    }
    parameters = {"monomials": monomials, "ids": 60, "naive_monomials": naive_monomials, "repeats": repeats}
    return Result("provenance", parameters, figures)


def _sums(monomials: int) -> tuple[Provenance, Provenance]:
    rng = random.Random(monomials)
    ids: list[Id] = [f"t{i}" for i in range(60)]
    left, right = (Provenance(rng.sample(ids, 3) for _ in range(monomials)) for _ in range(2))
    return left, right


def _naive(left: Provenance, right: Provenance) -> frozenset[Monomial]:
    products = {m | n for m in left.monomials for n in right.monomials}
    return frozenset(m for m in products if not any(n < m for n in products))
