"""Deltas of stages: what a hollow replica sends, under a dot, and is applied once."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from everview.algebra import checks
from everview.errors import WireError


@dataclass(frozen=True, slots=True)
class StageDelta:
    """What one file contributed to one stage since its delta before, under the dot (source, number)."""

    stage: str
    source: str
    number: int
    body: bytes

    def __post_init__(self) -> None:
        checks.name(self.stage, "a delta's stage")
        checks.name(self.source, "a delta's source")
        checks.positive(self.number, "a delta's number")

    def to_bytes(self) -> bytes:
        """Return it as it travels."""
        return msgspec.msgpack.encode([self.stage, self.source, self.number, self.body])

    @classmethod
    def from_bytes(cls, content: bytes) -> StageDelta:
        """Return the delta that has travelled."""
        try:
            return cls(*msgspec.msgpack.decode(content, type=tuple[str, str, int, bytes]))
        except msgspec.DecodeError as error:
            raise WireError(f"these bytes are no delta: {error}", where="frame", retry=True) from None
