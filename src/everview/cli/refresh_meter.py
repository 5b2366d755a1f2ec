"""A progress bar for refreshes, shown once one has taken a second and only to a terminal."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from everview.cli.patient import PATIENCE_SECONDS, begun

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from everview.hub import Hub

__all__ = ["RefreshMeter"]

LOOK_SECONDS = 0.2


class RefreshMeter:
    """Looks now and then how far a refresh is: the rows that its part has dealt with, or Spark's tasks."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._ended = threading.Event()
        self._bar: tuple[Progress, TaskID] | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._watch, name="everview-meter", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.look()
        self._hide()

    def look(self) -> None:
        """Show a refresh that takes long; hide it when it is done."""
        began, part = self._hub.timing.began, self._hub.timing.part
        if began is None or time.monotonic() - began < PATIENCE_SECONDS:
            self._hide()
            return
        if self._bar is None:
            self._bar = self._show()
        bar, task = self._bar
        done, total = self._tasks() if part is not None and not part.rows else (0, 0)
        rows = f"{part.rows:,} rows" if part is not None and part.rows else ""
        name = "" if part is None else part.name
        bar.update(task, completed=done, total=total or None, stage=name, rows=rows)

    def _tasks(self) -> tuple[int, int]:
        """Of the stages that Spark is at, how many tasks are done and how many there are."""
        done = total = 0
        with suppress(Exception):  # it may be stopping, and a bar is not worth an error
            tracker = self._hub.spark.sparkContext.statusTracker()
            for number in tracker.getActiveStageIds():
                found = tracker.getStageInfo(number)
                if found is not None:
                    done, total = done + found.numCompletedTasks, total + found.numTasks
        return done, total

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None

    def _show(self) -> tuple[Progress, TaskID]:
        from rich.progress import TextColumn, TimeElapsedColumn  # noqa: PLC0415 - only a long refresh needs them

        part = TextColumn("{task.fields[stage]} {task.fields[rows]}")
        return begun("refreshing", part, TimeElapsedColumn(), stage="", rows="")
