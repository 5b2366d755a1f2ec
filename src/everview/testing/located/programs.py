"""The programs of located worlds: worked examples of the papers, routes, and shapes that are easy to miss."""

from __future__ import annotations

from dataclasses import dataclass

LINK = ".decl link(@s: symbol, d: symbol)\n"


@dataclass(frozen=True, slots=True)
class Worked:
    """A program over links, or over facts of its own; `counts`: in counting mode its proofs stay few."""

    text: str
    facts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Empty: links, whichever there may be."""
    directed: bool = False
    """Whether links lead one way only, so that nothing goes round in a circle."""
    counts: bool = True
    near: bool = False
    """Whether no fact leads beyond the places that a place has links to."""


HOPS = f"""{LINK}
.decl hop(@s: symbol, d: symbol)
.decl tri_hop(@s: symbol, d: symbol)
hop(@x, y) :- link(@x, z), link(@z, y).
tri_hop(@x, y) :- hop(@x, z), link(@z, y).
"""
REACH = f"""{LINK}
.decl reach(@s: symbol, d: symbol)
reach(@s, d) :- link(@s, d).
reach(@s, d) :- link(@s, z), reach(@z, d).
"""
NON_LINEAR = f"""{LINK}
.decl reach(@s: symbol, d: symbol)
reach(@s, d) :- link(@s, d).
reach(@s, d) :- reach(@s, z), reach(@z, d).
"""
PATHS = f"""{LINK}
.decl path(@s: symbol, d: symbol, vector: symbol, hops: number)
path(@s, d, cat(s, " ", d), 1) :- link(@s, d).
path(@s, d, cat(s, " ", v), n + 1) :-
    link(@s, z), path(@z, d, v, n), strpos(v, s) = 0, n < 4, strlen(v) < 1000.
"""
CIRCLE = """
.decl a(@x: symbol)
.decl p(@x: symbol)
.decl q(@x: symbol)
p(@"b") :- a(@"a").
q(@"c") :- p(@"b").
p(@"b") :- q(@"c").
"""
PAIR = """
.decl s(@x: symbol)
.decl r(@x: symbol)
.decl q(@x: symbol)
.decl p(@x: symbol)
p(@"b") :- q(@"b"), r(@"b").
q(@"b") :- s(@"a").
"""
TWINS = f"""{LINK}
.decl twins(@s: symbol, d: symbol)
twins(@y, z) :- link(@x, y), link(@x, z), y != z.
twins(@y, y) :- link(@x, y), link(@x, y).
"""

WORKED = {
    "hops": Worked(HOPS),
    "directed paths": Worked(REACH, directed=True, near=True),
    "reachability": Worked(REACH, near=True),
    "non-linear": Worked(NON_LINEAR, counts=False),
    "path vectors": Worked(PATHS, near=True),
    "circle": Worked(CIRCLE, facts=(("a", ("a",)),)),
    "conflicting pair": Worked(PAIR, facts=(("s", ("a",)), ("r", ("b",)))),
    "twins": Worked(TWINS),
}
"""The circle is PSN's p and q; that its one fact comes, goes and comes again is Appendix B."""
