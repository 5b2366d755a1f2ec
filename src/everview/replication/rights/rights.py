"""Rights: what the holder of a token may read here, and write."""

from __future__ import annotations

from dataclasses import dataclass

from everview.language.partitions import Choices, covers
from everview.planner.published import view_of


@dataclass(frozen=True, slots=True)
class Rights:
    """Relations and views that a site may read and write; None is all. `site` is the name it must go by."""

    site: str | None = None
    reads: frozenset[str] | None = None
    writes: frozenset[str] | None = None
    watches: bool = False
    """Whether it may read the metrics of a server, which name everybody."""
    inserts: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()
    """Relations of which it may only insert rows, or only delete them: to update one takes both."""
    parts: tuple[tuple[str, Choices], ...] = ()
    """Relations of which it may read and write some values alone."""

    @property
    def are_limited(self) -> bool:
        """Whether something may not be read, or not be written."""
        return self.reads is not None or self.writes is not None or bool(self.parts)

    @property
    def writer(self) -> str:
        """What sets sites that may write the same apart from others: empty where they may write all."""
        if self.writes is None and not self.parts:
            return ""
        written = ["*"] if self.writes is None else sorted(self.writes | self.inserts | self.deletes)
        parts = (f"{name} {' '.join(sorted(choices))}" for name, choices in self.parts)
        return "/" + ",".join([*written, *parts])

    @property
    def may_write_any(self) -> bool:
        """Whether there is anything that it may write."""
        return self.writes is None or bool(self.writes | self.inserts | self.deletes)

    def may_read(self, stream: str) -> bool:
        """Whether a stream is sent to it."""
        return self.reads is None or view_of(stream) in self.reads

    def may_write(self, stream: str) -> bool:
        """Whether a stream is taken from it; what it may not insert or delete there is undone."""
        return self.may_insert(stream) or self.may_delete(stream)

    def may_insert(self, stream: str) -> bool:
        """Whether rows may be added to a stream."""
        return self.writes is None or view_of(stream) in self.writes | self.inserts

    def may_delete(self, stream: str) -> bool:
        """Whether rows may be removed from a stream."""
        return self.writes is None or view_of(stream) in self.writes | self.deletes

    def part_of(self, stream: str) -> Choices | None:
        """Return which values of a relation it may read and write; None is all."""
        return next((choices for name, choices in self.parts if name == stream), None)

    def covers(self, stream: str, value: str) -> bool:
        """Whether it may read and write a value of a relation, as far as values are limited."""
        return not value or covers(self.part_of(stream), value)


ALL = Rights(watches=True)
