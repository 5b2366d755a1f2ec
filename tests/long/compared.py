"""The store beside the model: one history a case, lived by both, and compared after every step."""

import tempfile
from collections import Counter
from pathlib import Path

from tests.replication.compared.histories import run
from tests.replication.compared.world import quiet

PARALLEL = True
COUNTS = Counter()


def case(seed):
    """Live a history; return what happened in it, how often."""
    quiet()
    with tempfile.TemporaryDirectory() as folder:
        return run(seed, Path(folder))


def tally(counts):
    """Add up what happened."""
    COUNTS.update(counts)


def summary():
    """All that happened in all histories."""
    return "\n".join(f"{number:>12,}  {what}" for what, number in sorted(COUNTS.items()))
