"""What a sync did, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Denied", "OnProgress", "Progress", "SyncReport"]


@dataclass(frozen=True, slots=True)
class Denied:
    """A relation or view that a peer does not let this site `read`, or does not let it `write` there.

    What is read and not hosted is needed for views that are: they stay without it.
    """

    right: Literal["read", "write"]
    name: str
    needed_for: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} (needed for {', '.join(self.needed_for)})" if self.needed_for else self.name


@dataclass(slots=True)
class SyncReport:
    """Rows and bytes that went each way."""

    sent_rows: int = 0
    received_rows: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    skipped_files: int = 0
    """Files in a folder that could not be used: torn, foreign, or of another program."""
    skipped: tuple[str, ...] = ()
    """Their names."""
    denied: tuple[Denied, ...] = ()
    """What the token did not allow: reading what this site hosts or needs, writing what it has written."""

    def __add__(self, other: SyncReport) -> SyncReport:
        return SyncReport(
            self.sent_rows + other.sent_rows,
            self.received_rows + other.received_rows,
            self.sent_bytes + other.sent_bytes,
            self.received_bytes + other.received_bytes,
            self.skipped_files + other.skipped_files,
            tuple(dict.fromkeys((*self.skipped, *other.skipped))),
            tuple(dict.fromkeys((*self.denied, *other.denied))),
        )

    def told_denied(self) -> str:
        """What was denied, in words; empty if nothing was."""
        verbs = (("reading", "read"), ("writing", "write"))
        told = ((verb, [str(one) for one in self.denied if one.right == right]) for verb, right in verbs)
        return "; ".join(f"{verb} {', '.join(names)}" for verb, names in told if names)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sync is: with whom, what is being done, and what went each way so far."""

    peer: str
    doing: str
    sent_rows: int
    received_rows: int
    sent_bytes: int
    received_bytes: int

    @classmethod
    def of(cls, peer: str, doing: str, report: SyncReport) -> Progress:
        """Return what a report says so far."""
        return cls(
            peer, doing, report.sent_rows, report.received_rows, report.sent_bytes, report.received_bytes
        )


OnProgress = Callable[[Progress], object]
