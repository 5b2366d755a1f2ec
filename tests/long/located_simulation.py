"""Worlds of sites that run located programs, every third by counting. What happened is counted."""

import logging
from collections import Counter

from everview.testing.simulation.located import LocatedSimulation

PARALLEL = True
COUNTS = Counter()


def case(seed):
    """Run a world; return what happened in it, how often."""
    logging.getLogger("everview").setLevel(logging.ERROR)  # worlds are full of what it warns of
    return LocatedSimulation(seed).run().counts


def tally(counts):
    """Add up what happened."""
    COUNTS.update(counts)


def summary():
    """All that happened in all worlds."""
    return "\n".join(f"{number:>12,}  {what}" for what, number in sorted(COUNTS.items()))
