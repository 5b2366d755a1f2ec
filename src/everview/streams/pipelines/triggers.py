"""Triggers: when a stage takes in what was gathered for it (Titan §5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from everview.errors import DataError

__all__ = ["Every", "OnNewData", "Trigger", "Waiting", "When", "every", "on_new_data", "when"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What has been gathered for a stage and is not in it yet: a hollow replica, as a condition sees it."""

    count: int
    """How many changes, of elements or, for a top-N, of keys."""
    read: Callable[[], Any] = field(repr=False)
    """Returns the value of what is waiting alone; of a top-N, the keys that changed."""


@dataclass(frozen=True, slots=True)
class OnNewData:
    """With each batch, in the same commit."""


@dataclass(frozen=True, slots=True)
class When:
    """As soon as a condition over what is waiting holds; it is asked after each batch."""

    condition: Callable[[Waiting], bool]

    def __post_init__(self) -> None:
        if not callable(self.condition):
            raise DataError(f"a condition must be callable, not {self.condition!r}", value=self.condition)


@dataclass(frozen=True, slots=True)
class Every:
    """Every so many seconds, if something is waiting."""

    seconds: float

    def __post_init__(self) -> None:
        if type(self.seconds) not in (int, float) or not 0 < self.seconds < float("inf"):
            raise DataError(
                f"a period is a number of seconds above 0, not {self.seconds!r}", value=self.seconds
            )


Trigger = OnNewData | When | Every


def on_new_data() -> OnNewData:
    """With each batch, in the same commit: what stages do unless told otherwise."""
    return OnNewData()


def when(condition: Callable[[Waiting], bool]) -> When:
    """As soon as `condition(waiting)` holds; `waiting.count` and `waiting.read()` say what is there."""
    return When(condition)


def every(seconds: float) -> Every:
    """Every so many seconds."""
    return Every(seconds)
