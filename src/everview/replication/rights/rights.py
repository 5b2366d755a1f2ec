"""Rights: what the holder of a token may read here, and write."""

from __future__ import annotations

from dataclasses import dataclass

from everview.planner.published import view_of


@dataclass(frozen=True, slots=True)
class Rights:
    """Relations and views that a site may read and write; None is all. `site` is the name it must go by."""

    site: str | None = None
    reads: frozenset[str] | None = None
    writes: frozenset[str] | None = None
    watches: bool = False
    """Whether it may read the metrics of a server, which name everybody."""

    @property
    def are_limited(self) -> bool:
        """Whether something may not be read, or not be written."""
        return self.reads is not None or self.writes is not None

    @property
    def writer(self) -> str:
        """What sets sites that may write the same apart from others: empty where they may write all."""
        return "" if self.writes is None else f"/{','.join(sorted(self.writes))}"

    def may_read(self, stream: str) -> bool:
        """Whether a stream is sent to it."""
        return self.reads is None or view_of(stream) in self.reads

    def may_write(self, stream: str) -> bool:
        """Whether a stream is taken from it."""
        return self.writes is None or view_of(stream) in self.writes


ALL = Rights(watches=True)
