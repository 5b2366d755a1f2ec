"""Whole worlds of sites; every tenth has no faults but over 100,000 rows. The faults are counted."""

import atexit
import sys
from collections import Counter

from everview.testing import Simulation

COUNTS = Counter()


def case(seed):
    COUNTS.update(Simulation(seed, large=seed % 10 == 9).run().counts)


@atexit.register
def _report():
    for what, number in sorted(COUNTS.items()):
        sys.stdout.write(f"{number:>12,}  {what}\n")
