"""A progress bar for loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everview.cli.patient import PatientMeter, begun

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from everview.cli.chunks import Chunk
    from everview.cli.sources import Source

__all__ = ["Meter"]


class Meter(PatientMeter):
    """Follows a load. Bytes are the measure where every source has a size, else there is only a count."""

    def __init__(self, sources: Sequence[Source], verb: str) -> None:
        super().__init__()
        sizes = [source.size for source in sources]
        known = [size for size in sizes if size is not None]
        self._total = sum(known) if len(known) == len(sizes) else None
        self._verb = verb
        self._finished = 0
        self._current: Source | None = None
        self._rows = 0

    def __call__(self, source: Source, chunk: Chunk) -> None:
        """Take note of a chunk."""
        if source is not self._current:
            self._finished += (self._current.size or 0) if self._current else 0
            self._current = source
        self._rows += len(chunk.rows)
        self._update(completed=self._finished + chunk.done, rows=f"{self._rows:,}")

    def _show(self) -> tuple[Progress, TaskID]:
        from rich.progress import TextColumn, TimeElapsedColumn  # noqa: PLC0415 - only a long load needs them

        counted = TextColumn("{task.fields[rows]} rows")
        return begun(self._verb, counted, TimeElapsedColumn(), total=self._total, rows="")
