"""Dots: the name of a row, written once, as one integer of a store.

A dot is an incarnation and a number. Numbers are dense in a relation: an incarnation gives its first row
there the number 1. In a store the incarnation is a number too, from the table of sites, so a dot is 64 bits:
the site above, the row's number in the lowest 40. Rows of one site lie side by side in an index of dots.
"""

from __future__ import annotations

SHIFT = 40
"""The bits of a row's number."""

NUMBERS = (1 << SHIFT) - 1
"""The greatest number of a row: a million a second for twelve days, and then a new incarnation."""

SITES = (1 << (63 - SHIFT)) - 1
"""The greatest number of a site in a store."""


def dot(site: int, number: int) -> int:
    """Return the dot of a site's row."""
    return site << SHIFT | number


def site_of(dot: int) -> int:
    """Return the number of the site that wrote a row."""
    return dot >> SHIFT


def number_of(dot: int) -> int:
    """Return the row's number."""
    return dot & NUMBERS
