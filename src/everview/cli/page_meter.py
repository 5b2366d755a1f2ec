"""A progress bar for copying a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.cli.patient import PatientMeter, begun

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["PageMeter"]


class PageMeter(PatientMeter):
    """Follows a copy by its pages."""

    def __init__(self, doing: str) -> None:
        super().__init__()
        self._doing = doing

    def __call__(self, done: int, total: int) -> None:
        """Take note of how many pages are copied."""
        self._update(completed=done, total=total)

    def _show(self) -> tuple[Progress, TaskID]:
        from rich.progress import TaskProgressColumn, TimeRemainingColumn  # noqa: PLC0415 - only a long copy needs them

        return begun(self._doing, TaskProgressColumn(), TimeRemainingColumn())
