"""The exact sum of DOUBLEs in Spark SQL, rounded once: the order of rows cannot show.

The values of a group are added into an expansion (Shewchuk 1997): a list of doubles, least first, whose
exact sum is the exact sum so far, because what each addition rounds off is kept as an element of its own.
The expansion is rounded at the end, half to even, as C Python's `fsum` does. Sums that pass the greatest
double on the way are added 2^100 times smaller; what would vanish by that can only break ties, and a
least double stands for it.

The price is that a group's values are collected: a group must fit the memory of one task.
"""

from __future__ import annotations

from everview.engines.spark.text import Names

__all__ = ["exact_sum"]

_NONE = "CAST(array() AS ARRAY<DOUBLE>)"
_INFINITY = "double('inf')"
_BIG = repr(2.0**900)
_SMALL = repr(2.0**-900)
_SCALE = repr(2.0**100)
_UNSCALE = repr(2.0**-100)
_LEAST = "4.9E-324D"


def exact_sum(names: Names, values: str) -> str:
    """The sum of an array of DOUBLEs without NULLs; NULL for none, and when it does not fit."""
    return names.let((values,), _chosen)


def _chosen(values: str) -> str:
    special = f"filter({values}, x -> NOT abs(x) < {_INFINITY})"
    return (
        f"CASE WHEN size({values}) = 0 THEN NULL "
        f"WHEN size({special}) > 0 THEN aggregate({special}, 0.0D, (s, x) -> s + x) "
        f"WHEN exists({values}, x -> abs(x) >= {_BIG}D) THEN {_large(values)} "
        f"ELSE {_rounded(_expansion(values, _NONE))} END"
    )


def _expansion(values: str, start: str) -> str:
    """The expansion `start` with the values added one by one; no element is 0."""
    kept = "CASE WHEN e = 0 THEN g.o ELSE concat(g.o, array(e)) END"
    lost = "(g.h - (t - (t - g.h))) + (y - (t - g.h))"
    step = f"transform(array(g.h + y), t -> transform(array({lost}), e -> struct(t AS h, {kept} AS o))[0])[0]"
    grown = f"aggregate(p, struct(x AS h, {_NONE} AS o), (g, y) -> {step})"
    listed = "CASE WHEN w.h = 0 THEN w.o ELSE concat(w.o, array(w.h)) END"
    return f"aggregate({values}, {start}, (p, x) -> transform(array({grown}), w -> {listed})[0])"


def _rounded(expansion: str) -> str:
    """The double nearest to the exact sum of an expansion.

    Going down from the greatest element, the first sum that is not exact decides (`n` = 1); the element
    after it tells whether what was rounded off was more than half (`n` = 2).
    """
    first = "transform(array(r.h + y), t -> transform(array(y - (t - r.h)), e -> "
    first += "struct(t AS h, e AS e, CASE WHEN e = 0 THEN 0 ELSE 1 END AS n))[0])[0]"
    more = "signum(y) = signum(r.e) AND (r.h + 2 * r.e) - r.h = 2 * r.e"
    second = f"struct(CASE WHEN {more} THEN r.h + 2 * r.e ELSE r.h END AS h, r.e AS e, 2 AS n)"
    step = f"CASE r.n WHEN 0 THEN {first} WHEN 1 THEN {second} ELSE r END"
    return (
        f"aggregate(reverse({expansion}), struct(0.0D AS h, 0.0D AS e, 0 AS n), (r, y) -> {step}, r -> r.h)"
    )


def _large(values: str) -> str:
    big = f"transform(filter({values}, x -> abs(x) >= {_SMALL}D), x -> x * {_UNSCALE}D)"
    tiny = f"filter({values}, x -> abs(x) < {_SMALL}D)"
    # Where the large values cancel, nothing overflows any more and all can be added as they are.
    near = _rounded(_expansion(tiny, f"transform(b, x -> x * {_SCALE}D)"))
    rest = f"signum({_rounded(_expansion(tiny, _NONE))}) * {_LEAST}"
    sticky = f"filter(concat(array({rest}), b), x -> x <> 0)"
    finite = f"nullif(nullif(z, {_INFINITY}), -{_INFINITY})"
    far = f"transform(array({_rounded(sticky)} * {_SCALE}D), z -> {finite})[0]"
    cancelled = f"coalesce(abs(try_element_at(b, -1)), 0.0D) < {2.0**800!r}D"
    chosen = f"CASE WHEN {cancelled} THEN {near} ELSE {far} END"
    return f"transform(array({_expansion(big, _NONE)}), b -> {chosen})[0]"
