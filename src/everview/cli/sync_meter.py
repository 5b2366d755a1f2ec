"""A progress bar for syncs, shown once one has taken a second and only to a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from everview.replication.report import Progress

__all__ = ["SyncMeter"]

PATIENCE_SECONDS = 1.0


class SyncMeter:
    """Follows a sync. How much there is to come is not known, so the bar only moves."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._bar: tuple[Bar, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()

    def __call__(self, progress: Progress) -> None:
        """Take note of what has been moved."""
        if self._bar is None:
            if not sys.stderr.isatty() or time.monotonic() - self._started < PATIENCE_SECONDS:
                return
            self._bar = self._show(progress.peer)
        bar, task = self._bar
        moved = f"{progress.received_rows:,} rows in, {progress.sent_rows:,} out"
        bar.update(task, moved=moved, completed=progress.sent_bytes + progress.received_bytes)

    def _show(self, peer: str) -> tuple[Bar, TaskID]:
        from rich.console import Console  # noqa: PLC0415 - only a long sync needs them
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TransferSpeedColumn  # noqa: PLC0415
        from rich.progress import Progress as Bar  # noqa: PLC0415

        bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[moved]}"),
            TransferSpeedColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = bar.add_task(f"syncing with {peer}", total=None, moved="")
        bar.start()
        return bar, task
