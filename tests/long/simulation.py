"""Whole worlds of sites; every tenth has no faults but over 100,000 rows. The faults are counted."""

import logging
from collections import Counter

from everview.testing import Simulation

PARALLEL = True
COUNTS = Counter()


def is_large(seed):
    """Whether a world has many rows, and no faults; it takes some twenty times as long as others."""
    return seed % 10 == 9


def case(seed):
    """Run a world; return what happened in it, how often."""
    logging.getLogger("everview").setLevel(logging.ERROR)  # worlds are full of what it warns of
    return Simulation(seed, kind="large" if is_large(seed) else "").run().counts


def tally(counts):
    """Add up what happened."""
    COUNTS.update(counts)


def summary():
    """All that happened in all worlds."""
    return "\n".join(f"{number:>12,}  {what}" for what, number in sorted(COUNTS.items()))
