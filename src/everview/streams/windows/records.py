"""Records: what processors write down, each once, and what is learnt of others'."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Entry", "Floor", "News", "Output", "RowChange"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a processor had when it closed a window: its state, as bytes, and the message it goes on with.

    `joins` names those that take part from the next window on, in order, each with its first message; one
    that `leaves` takes part in none after it.
    """

    window: int
    processor: str
    index: int
    state: bytes
    joins: tuple[tuple[str, int], ...] = ()
    leaves: bool = False
    mark: str | None = field(default=None, compare=False)
    """What tells the messages before it from others, as its source says; a peer's source may say nothing."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Windows below this one were collected; these are its members."""

    window: int
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Output:
    """What a processor emitted: the `number`-th output of a message, as JSON."""

    processor: str
    index: int
    number: int
    value: str


@dataclass(frozen=True, slots=True)
class News:
    """Records that have come to be known."""

    entries: tuple[Entry, ...] = ()
    outputs: tuple[Output, ...] = ()
    floors: tuple[Floor, ...] = ()


class RowChange(NamedTuple):
    """A message of a change log: a row that came (weight above 0) or went (below), in so many copies."""

    row: tuple[Any, ...]
    weight: int
