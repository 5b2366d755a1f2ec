"""Sketches as SQLite functions: how often each mark or step is there, by change.

The state of a group is one text of the places and their counts; a change is another, whose counts may be
below 0. Its size is bounded by what a sketch can tell apart, not by the rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from everview.algebra.sketch_text import (
    counts_text,
    mark,
    marks_text,
    read_counts,
    read_marks,
    step,
)
from everview.language.values import NAN

__all__ = ["register"]


class _Counts:
    """An aggregate function of (value, weight) that gives the state."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def _add(self, place: int, weight: int) -> None:
        self._counts[place] = self._counts.get(place, 0) + weight

    def finalize(self) -> str:
        return counts_text(self._counts)


class _Codes(_Counts):
    """Of marks or steps."""

    def step(self, code: int | None, weight: int) -> None:
        if code is not None:
            self._counts[code] = self._counts.get(code, 0) + weight


class _Marks(_Counts):
    """Of sketches of different values, each of which has one mark in a slot."""

    def step(self, text: str | None, weight: int) -> None:
        for found in read_marks(text or ""):
            self._add(found, weight)


class _Texts(_Counts):
    """Of sketches of numbers."""

    def step(self, text: str | None, weight: int) -> None:
        for place, count in read_counts(text or "").items():
            self._add(place, count * weight)


def _added(state: str, change: str) -> str:
    counts = read_counts(state)
    for place, count in read_counts(change).items():
        counts[place] = counts.get(place, 0) + count
    return counts_text(counts)


def _step(number: float | str | None) -> int | None:
    if number is None:
        return None
    return step(NAN if isinstance(number, str) else number)


def register(connection: sqlite3.Connection) -> None:
    """Register the functions on a connection."""
    for name, kind in (("codes", _Codes), ("marks", _Marks), ("texts", _Texts)):
        connection.create_aggregate(f"ev_sketch_of_{name}", 2, kind)  # type: ignore[arg-type]  # step takes both
    scalars: dict[str, tuple[int, Callable[..., Any]]] = {
        "ev_sketch_mark": (1, lambda text: None if text is None else mark(text)),
        "ev_sketch_step": (1, _step),
        "ev_sketch_marks": (1, lambda state: None if state is None else marks_text(read_counts(state))),
        "ev_sketch_added": (2, _added),
    }
    for name, (arity, function) in scalars.items():
        connection.create_function(name, arity, function, deterministic=True)
