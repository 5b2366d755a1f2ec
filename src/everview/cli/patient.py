"""A progress bar that comes late: once something has taken a second, and only to a terminal."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

__all__ = ["PATIENCE_SECONDS", "PatientMeter", "begun"]

PATIENCE_SECONDS = 1.0


class PatientMeter(ABC):
    """Follows something that may take long; what its bar shows is for those to say that follow it."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()

    def _update(self, **known: Any) -> None:
        """Show what is known now, if it is time."""
        if self._bar is None and sys.stderr.isatty() and self._is_time():
            self._bar = self._show()
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, **known)

    def _is_time(self) -> bool:
        return time.monotonic() - self._started >= PATIENCE_SECONDS

    @abstractmethod
    def _show(self) -> tuple[Progress, TaskID]:
        """Begin a bar."""


def begun(
    doing: str, *columns: ProgressColumn, total: float | None = None, **fields: Any
) -> tuple[Progress, TaskID]:
    """A bar on standard error that is gone when it ends."""
    from rich.console import Console  # noqa: PLC0415 - only what takes long needs them
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    described = TextColumn("{task.description}", markup=False)
    bar = Progress(described, BarColumn(), *columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(doing, total=total, **fields)
    bar.start()
    return bar, task
