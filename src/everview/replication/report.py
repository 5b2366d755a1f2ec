"""What a sync did, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SyncReport:
    """Rows and bytes that went each way."""

    sent_rows: int = 0
    received_rows: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0

    def __add__(self, other: SyncReport) -> SyncReport:
        return SyncReport(
            self.sent_rows + other.sent_rows,
            self.received_rows + other.received_rows,
            self.sent_bytes + other.sent_bytes,
            self.received_bytes + other.received_bytes,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sync is: what is being done, and the rows that went each way so far."""

    doing: str
    sent_rows: int
    received_rows: int
