"""Numbers that no honest site comes near: what others claim beyond them is not taken, and does no harm.

A limit is of use only if what is made here from what was taken keeps to it, too: else others would drop that.
"""

from __future__ import annotations

__all__ = ["COPIES", "LONGEST", "WIDEST_NAME"]

LONGEST = 1 << 62
"""No causal length is above this. It is even: a tuple that has come so far is deleted, and stays so."""

COPIES = 1 << 31
"""No entry of a bag has a weight above this: then sums of them fit an INTEGER."""

WIDEST_NAME = 1 << 14
"""How many characters the name of a site, a group or a stream has at most."""
