"""Reports: what a sync moved, while it goes on and when it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

__all__ = ["OnProgress", "Progress", "SyncReport"]


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync moved. Rows received are those that were news here."""

    sent_rows: int = 0
    received_rows: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    skipped_files: int = 0
    """Files in a folder that could not be used: torn, foreign, or of another program."""

    def __add__(self, other: Self) -> SyncReport:
        return SyncReport(
            self.sent_rows + other.sent_rows,
            self.received_rows + other.received_rows,
            self.sent_bytes + other.sent_bytes,
            self.received_bytes + other.received_bytes,
            self.skipped_files + other.skipped_files,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sync is: rows and bytes of the pages that have gone and come so far."""

    peer: str
    sent_rows: int
    received_rows: int
    sent_bytes: int
    received_bytes: int


OnProgress = Callable[[Progress], object]
