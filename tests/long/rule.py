"""Worlds of the specification, one of each kind a case."""

from collections import Counter

from spec.replication.worlds.registry import WORLDS

PARALLEL = True
COUNTS = Counter()


def case(seed):
    """Run a world of each kind; return what happened in them, how often."""
    counts = Counter()
    for kind, world in WORLDS.items():
        made = world(seed)
        assert made.run() == [], kind
        counts.update(made.count)
    return counts


def tally(counts):
    """Add up what happened."""
    COUNTS.update(counts)


def summary():
    """All that happened in all worlds."""
    return ", ".join(f"{number:,} {what}" for what, number in sorted(COUNTS.items()))
