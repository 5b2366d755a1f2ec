"""Located programs that the tests run, and links to run them on."""

from everview.testing.located.programs import CIRCLE, HOPS, LINK, NON_LINEAR, REACH, TWINS

COSTS = f"""{LINK}
.decl path(@s: symbol, d: symbol, c: number)
path(@s, d, 1) :- link(@s, d).
path(@s, d, c) :- link(@s, z), path(@z, d, k), c = k + 1, c <= 4, s != d.
"""
BOTH = f"""{LINK}
.decl even(@s: symbol, d: symbol)
.decl odd(@s: symbol, d: symbol)
odd(@s, d) :- link(@s, d).
even(@s, d) :- link(@s, z), odd(@z, d).
odd(@s, d) :- link(@s, z), even(@z, d).
"""
PAIRS = """
.decl pair(@s: symbol, x: symbol, y: symbol)
.decl same(@s: symbol, x: symbol)
.decl other(@x: symbol, y: symbol, t: symbol)
.decl at_b(@s: symbol, x: symbol)
same(@s, x) :- pair(@s, x, x).
other(@x, y, t) :- pair(@s, x, y), same(@x, z), t = cat(y, z), x != y.
at_b(@"b", y) :- pair(@s, "b", y), same(@"b", y).
"""

PROGRAMS = {
    "reach": REACH,
    "non_linear": NON_LINEAR,
    "hops": HOPS,
    "twins": TWINS,
    "costs": COSTS,
    "circle": CIRCLE,
    "both": BOTH,
    "pairs": PAIRS,
}


def writable(text, rng, nodes, count, acyclic=False):
    """Some base facts of a program."""
    if text is CIRCLE:
        return [("a", ("a",))]
    if text is PAIRS:
        return [("pair", tuple(rng.choice("abc") for _ in range(3))) for _ in range(2 * count)]
    pairs = [(a, b) for a in nodes for b in nodes if a < b or (a > b and not acyclic)]
    return [("link", pair) for pair in rng.sample(pairs, min(count, len(pairs)))]
