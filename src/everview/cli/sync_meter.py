"""A progress bar for syncs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.cli.patient import PatientMeter, begun

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from everview.replication.transports.report import Progress

__all__ = ["SyncMeter"]


class SyncMeter(PatientMeter):
    """Follows a sync. How much there is to come is not known, so the bar only moves."""

    def __init__(self) -> None:
        super().__init__()
        self._peer = ""

    def __call__(self, progress: Progress) -> None:
        """Take note of what has been moved."""
        self._peer = progress.peer
        moved = f"{progress.received_rows:,} rows in, {progress.sent_rows:,} out"
        self._update(moved=moved, completed=progress.sent_bytes + progress.received_bytes)

    def _show(self) -> tuple[Bar, TaskID]:
        from rich.progress import TextColumn, TimeElapsedColumn, TransferSpeedColumn  # noqa: PLC0415

        moved = TextColumn("{task.fields[moved]}")
        return begun(
            f"syncing with {self._peer}", moved, TransferSpeedColumn(), TimeElapsedColumn(), moved=""
        )
