"""Metrics in the text format that Prometheus reads (version 0.0.4).

A family is a name, what it means, and a number for each combination of labels. Names and rules are those of
https://prometheus.io/docs/instrumenting/exposition_formats: so little that it needs no package.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["CONTENT_TYPE", "Counter", "Family", "Histogram", "Labels", "gauge", "render"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]
"""Names and values."""


@dataclass(frozen=True, slots=True)
class Family:
    """All numbers of one name; a sample's own name may have a suffix, as a histogram's have."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: Sequence[tuple[str, Labels, float]] = ()


def gauge(name: str, meaning: str, *values: tuple[float, dict[str, str]]) -> Family:
    """A number that goes up and down, for each of these labels."""
    samples = [("", tuple(labels.items()), float(value)) for value, labels in values]
    return Family(name, "gauge", meaning, samples)


@dataclass(slots=True)
class Counter:
    """A number that only grows, for each combination of labels; from any thread."""

    name: str
    help: str
    _values: dict[Labels, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, value: float = 1, **labels: str) -> None:
        """Let it grow."""
        key = tuple(labels.items())
        with self._lock:
            self._values[key] = self._values.get(key, 0.0) + value

    def family(self, more: Mapping[Labels, float] | None = None) -> Family:
        """What it has come to, with `more` that is counted elsewhere, under labels of its own."""
        with self._lock:
            values = self._values | dict(more or {})
        samples = [("", labels, value) for labels, value in sorted(values.items())]
        return Family(self.name, "counter", self.help, samples or [("", (), 0.0)])


@dataclass(slots=True)
class Histogram:
    """How often a number was at most each of the bounds, for each combination of labels; from any thread."""

    name: str
    help: str
    bounds: tuple[float, ...]
    _counts: dict[Labels, list[int]] = field(default_factory=dict)
    _sums: dict[Labels, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def observe(self, value: float, **labels: str) -> None:
        """Count a number."""
        key = tuple(labels.items())
        with self._lock:
            counts = self._counts.setdefault(key, [0] * (len(self.bounds) + 1))
            counts[bisect_left(self.bounds, value)] += 1
            self._sums[key] = self._sums.get(key, 0.0) + value

    def family(self) -> Family:
        """What was counted."""
        samples: list[tuple[str, Labels, float]] = []
        with self._lock:
            for labels, counts in sorted(self._counts.items()):
                total = 0
                for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
                    total += count
                    samples.append(("_bucket", (*labels, ("le", _number(bound))), total))
                samples.append(("_sum", labels, self._sums[labels]))
                samples.append(("_count", labels, total))
        return Family(self.name, "histogram", self.help, samples)


def render(families: Iterable[Family]) -> str:
    """The text of an answer."""
    lines = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for suffix, labels, value in family.samples:
            listed = ",".join(f'{name}="{_quoted(text)}"' for name, text in labels)
            lines.append(f"{family.name}{suffix}{f'{{{listed}}}' if listed else ''} {_number(value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")
