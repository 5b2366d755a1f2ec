"""The first byte of a column: how the rest of it is to be read."""

from __future__ import annotations

import enum

__all__ = ["Code"]


class Code(enum.IntEnum):
    """How a column is coded."""

    INTEGERS = 1
    DELTAS = 2
    RUNS = 3
    DOUBLES = 4
    TEXTS = 5
    BLOBS = 6
    DICTIONARY = 7
    MIXED = 8
