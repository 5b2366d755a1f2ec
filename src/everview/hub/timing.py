"""Which part of a refresh is under way, since when and how far, and what each part took.

It is written by the thread that refreshes, and may be looked at by any other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Part", "Timing"]


@dataclass(slots=True)
class Part:
    """A part of a refresh: its name, when it began (of `time.monotonic`), and the rows it has dealt with."""

    name: str
    began: float
    rows: int = 0


class Timing:
    """The parts of the refresh that is under way, or of the last one."""

    def __init__(self) -> None:
        self.began: float | None = None
        """When the refresh under way began; None when there is none."""
        self.part: Part | None = None
        self.seconds: dict[str, float] = {}

    @contextmanager
    def refresh(self) -> Iterator[None]:
        """A refresh, and all that is done on its occasion."""
        self.began, self.seconds = time.monotonic(), {}
        try:
            yield
        finally:
            self.began = self.part = None

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """A part of it; what it took is added to what it has taken before."""
        part = self.part = Part(name, time.monotonic())
        try:
            yield
        finally:
            self.part = None
            taken = time.monotonic() - part.began
            self.seconds[name] = self.seconds.get(name, 0.0) + taken

    def count(self, rows: int) -> None:
        """The part under way has dealt with so many more rows."""
        if self.part is not None:
            self.part.rows += rows
