"""A progress bar, shown once a load has taken a second and only to a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from everview.cli.chunks import Chunk
    from everview.cli.sources import Source

__all__ = ["Meter"]

PATIENCE_SECONDS = 1.0


class Meter:
    """Follows a load. Bytes are the measure where every source has a size, else there is only a count."""

    def __init__(self, sources: Sequence[Source], verb: str) -> None:
        sizes = [source.size for source in sources]
        known = [size for size in sizes if size is not None]
        self._total = sum(known) if len(known) == len(sizes) else None
        self._verb = verb
        self._finished = 0
        self._current: Source | None = None
        self._rows = 0
        self._started = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()

    def __call__(self, source: Source, chunk: Chunk) -> None:
        """Take note of a chunk."""
        if source is not self._current:
            self._finished += (self._current.size or 0) if self._current else 0
            self._current = source
        self._rows += len(chunk.rows)
        if self._bar is None and sys.stderr.isatty():
            if time.monotonic() - self._started < PATIENCE_SECONDS:
                return
            self._bar = self._show()
        if self._bar is not None:
            progress, task = self._bar
            progress.update(task, completed=self._finished + chunk.done, rows=f"{self._rows:,}")

    def _show(self) -> tuple[Progress, TaskID]:
        from rich.console import Console  # noqa: PLC0415 - only a long load needs them
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rows]} rows"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = progress.add_task(self._verb, total=self._total, rows="")
        progress.start()
        return progress, task
