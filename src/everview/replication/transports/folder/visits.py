"""A visit to a folder: who comes, and what has been done so far."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from everview.replication.protocol.replica import Replica
from everview.replication.transports.folder.files import Files
from everview.replication.transports.report import OnProgress, Progress, SyncReport

__all__ = ["Visit"]

_LOG = logging.getLogger("everview")


@dataclass(slots=True)
class Visit:
    """What one visit has done so far."""

    visitor: Replica
    files: Files
    """What the visitor reads and writes."""
    folder: Path
    on_progress: OnProgress | None
    doing: str = "receiving"
    report: SyncReport = field(default_factory=SyncReport)
    torn: set[Path] = field(default_factory=set)

    def add(self, more: SyncReport) -> None:
        """Count what was done, and say so."""
        self.report += more
        if self.on_progress is not None:
            self.on_progress(Progress.of(str(self.folder), self.doing, self.report))

    def skip(self, path: Path, error: Exception | None = None) -> None:
        """Go on without a file. What is no fault of its bytes is logged."""
        name = path.relative_to(self.folder).as_posix()
        if path not in self.torn:
            self.torn.add(path)
            self.add(SyncReport(skipped_files=1, skipped=(name,)))
        if error is not None:
            _LOG.warning("%s is skipped: %s", path, error)
