"""Numbers that no honest site comes near: what others claim beyond them is not taken, and does no harm.

A limit is of use only if what is made here from what was taken keeps to it, too: else others would drop that.
"""

from __future__ import annotations

__all__ = ["COPIES", "HIGHEST_FLOOR", "LONGEST", "MOST_TOLD", "WIDEST_NAME"]

LONGEST = 1 << 62
"""No causal length is above this. It is even: a tuple that has come so far is deleted, and stays so."""

HIGHEST_FLOOR = LONGEST >> 1
"""No floor is: what is written above one has as many lives again. A tuple with more is never forgotten."""

COPIES = 1 << 31
"""No entry of a bag has a weight above this: then sums of them fit an INTEGER."""

WIDEST_NAME = 1 << 14
"""How many characters the name of a site, a group or a stream has at most."""

MOST_TOLD = 3 << 20
"""How many characters the list of members has at most: it has to fit into a message's header."""
