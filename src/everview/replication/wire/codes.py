"""The first byte of a column: how the rest of it is to be read."""

from __future__ import annotations

import enum

__all__ = ["Code"]


class Code(enum.IntEnum):
    """How a column is coded. Numbers are never used again for something else."""

    INTEGERS = 1
    DELTAS = 2
    RUNS = 3
    DOUBLES = 4
    TEXTS = 5
    BLOBS = 6
    IDS = 7
    DICTIONARY = 8
    MIXED = 9
