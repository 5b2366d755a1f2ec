"""A progress bar for copying a file, shown once that has taken a second and only to a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["PageMeter"]

PATIENCE_SECONDS = 1.0


class PageMeter:
    """Follows a copy by its pages."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._started = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()

    def __call__(self, done: int, total: int) -> None:
        """Take note of how many pages are copied."""
        if self._bar is None:
            if not sys.stderr.isatty() or time.monotonic() - self._started < PATIENCE_SECONDS:
                return
            self._bar = self._show()
        bar, task = self._bar
        bar.update(task, completed=done, total=total)

    def _show(self) -> tuple[Progress, TaskID]:
        from rich.console import Console  # noqa: PLC0415 - only a long copy needs them
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = bar.add_task(self._doing, total=None)
        bar.start()
        return bar, task
